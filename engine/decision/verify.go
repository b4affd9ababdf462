// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// What the writer asks for of our annotations is compared with what is stored. Controllers copy
// annotations from one object to another without meaning
// anything by it, so their writes are put right silently; a person who writes a value
// of theirs is reported. What we wrote ourselves, when we were asked about the same
// request before, is no forgery.

// conflict says why what will be stored is not what is decided; empty where it is.
// What is held was taken back before, and is no change any more.
func conflict(o request.Objects, j *rule.Judged, s *stamp.Stamped) string {
	if j.Action != v1alpha1.ActionDeny && j.Action != v1alpha1.ActionHold {
		return ""
	}

	if j.Action == v1alpha1.ActionHold && o.Operation == request.OperationUpdate && !j.Allowed() {
		return fmt.Sprintf("%s: %s, and could not be kept back, for something else set it again, "+
			"or Kausality was not asked before: try again", o.Title(), unallowedMessage(j.Findings))
	}

	differ := differing(o, s)
	if len(differ) == 0 {
		return ""
	}

	return fmt.Sprintf("%s: %s is not what Kausality gives for this change: "+
		"another webhook changed the object after it, or Kausality was not asked before: try again", o.Title(), strings.Join(differ, ", "))
}

// differing are the annotations of ours, and the gate that opens, that would be stored otherwise than
// they should. What was held is no change any more, so nothing shows what to
// record of it; an edit was recorded at another moment.
func differing(o request.Objects, s *stamp.Stamped) []string {
	got := resource.Map(o.Asked.Object, "metadata", "annotations")
	want := resource.Map(s.Object.Object, "metadata", "annotations")

	var out []string

	for _, annotations := range []map[string]any{got, want} {
		for key := range annotations {
			if input.Ours(key) && key != v1alpha1.AnnotationHeld && !slices.Contains(out, key) && !sameFinally(o, s.Object, key) {
				out = append(out, key)
			}
		}
	}

	if s.Opens && !management.Same(input.SetOf(o.Asked), input.SetOf(s.Object)) {
		out = append(out, input.FieldPolicies)
	}

	slices.Sort(out)

	return out
}

// sameFinally reports whether an annotation is as good as the one that is decided.
// Since the mutating webhook was asked, the API server may have made a name and
// filled in other fields, which then count as changed too: for the same reason,
// to the same end, but by another path.
func sameFinally(o request.Objects, object *unstructured.Unstructured, key string) bool {
	if resource.Annotation(o.Asked, key) == resource.Annotation(object, key) {
		return true
	}

	switch key {
	case v1alpha1.AnnotationAllowances:
		got, gotErr := allowance.Parse(o.Asked)
		want, wantErr := allowance.Parse(object)

		return gotErr == nil && wantErr == nil && sameGrants(got, want) && sameGrants(want, got)
	case v1alpha1.AnnotationTrace:
		got, gotErr := allowance.ParseTrace(o.Asked)
		want, wantErr := allowance.ParseTrace(object)

		return gotErr == nil && wantErr == nil && len(got) > 0 && len(want) > 0 &&
			got[0].Generation == want[0].Generation && got[0].Initiator == want[0].Initiator
	case v1alpha1.AnnotationRecord:
		got, gotErr := allowance.ParseRecord(o.Asked)
		want, wantErr := allowance.ParseRecord(object)

		return gotErr == nil && wantErr == nil && got.Request == want.Request && len(got.Used) >= len(want.Used) &&
			slices.Equal(got.Windows, want.Windows)
	case v1alpha1.AnnotationGate: // It has the time at which the mutating webhook was asked; the manager writes one that is not there.
		return o.Operation == request.OperationCreate && resource.Annotation(o.Asked, key) == "" || gate.SameRecord(o.Asked, object)
	default:
		return false
	}
}

// sameGrants reports whether every allowance is among others, whatever path led to
// it.
func sameGrants(list, others []v1alpha1.Allowance) bool {
	return !slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool {
		return !slices.ContainsFunc(others, func(b v1alpha1.Allowance) bool {
			return a.APIGroup == b.APIGroup && a.Kind == b.Kind && a.Mutation == b.Mutation && a.Relation == b.Relation &&
				slices.Equal(a.Mutations, b.Mutations) && a.Generation == b.Generation && a.Initiator == b.Initiator &&
				allowance.SameGiver(a, b)
		})
	})
}
