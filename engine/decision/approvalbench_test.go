// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// BenchmarkDecideApprovals measures 1,000 changes of one object of which none is approved, and as
// many as one ChangeApproval names: those take no multiple of the time.
func BenchmarkDecideApprovals(b *testing.B) {
	const changes = 1000

	for _, approved := range []int{0, v1alpha1.MaxPendingChanges} {
		b.Run(fmt.Sprintf("changes=%d/approved=%d", changes, approved), func(b *testing.B) {
			req := approvedFields(b, changes, approved)

			b.ReportAllocs()

			for b.Loop() {
				allowed := 0

				for _, f := range decision.Decide(req).Findings {
					if f.Verdict == finding.Allowed {
						allowed++
					}
				}

				if allowed != approved {
					b.Fatalf("%d are allowed, want %d", allowed, approved)
				}
			}
		})
	}
}

// approvedFields is a request that changes as many fields of a part of an XR, of which the first are
// approved.
func approvedFields(tb testing.TB, changes, approved int) request.Request {
	tb.Helper()

	xr, old := objectOf(tb, approvedXR), objectOf(tb, approvedPart)
	obj := old.DeepCopy()

	for i := range changes {
		field := fmt.Sprintf("field%04d", i)
		setTo(tb, old, "a", "spec", field)
		setTo(tb, obj, "b", "spec", field)
	}

	req := byCrossplane(old, obj, xr)
	d := decision.Decide(req)
	list := make([]v1alpha1.Allowance, 0, approved)

	for _, f := range d.Findings[:approved] {
		list = append(list, approvalOf(xr, "Part", f.Change.Field, f.Approvable().Digest))
	}

	xr.SetAnnotations(map[string]string{v1alpha1.AnnotationInitialized: `{"v":1}`, v1alpha1.AnnotationAllowances: allowance.FormatList(list)})

	return req
}

func setTo(tb testing.TB, u *unstructured.Unstructured, v any, path ...string) {
	tb.Helper()

	if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
		tb.Fatal(err)
	}
}
