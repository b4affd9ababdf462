// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// TestATrimmedParentDecidesAsTheWhole asks with what the manager's cache, and
// what the webhook remembers, hold of a parent.
func TestATrimmedParentDecidesAsTheWhole(t *testing.T) {
	for name, req := range requests(t) {
		if req.Parent == nil || req.ReadsParent() { // Then the webhook reads it whole.
			continue
		}

		t.Run(name, func(t *testing.T) {
			want := decision.Decide(req)
			whole := req.Parent

			req.Parent = whole.DeepCopy()
			resource.Trim(req.Parent)

			if diff := cmp.Diff(want.Object, decision.Decide(req).Object); diff != "" {
				t.Errorf("Decide with a trimmed parent, -whole, +trimmed:\n%s", diff)
			}

			req.Parent = whole.DeepCopy()
			gate.Trim(req.Parent, nil)

			again := decision.Decide(req)
			if diff := cmp.Diff(want.Object, again.Object); diff != "" {
				t.Errorf("Decide with a cached parent, -whole, +cached:\n%s", diff)
			}

			if diff := cmp.Diff(want.Answer(), again.Answer()); diff != "" {
				t.Errorf("Decide with a cached parent: the answer, -whole, +cached:\n%s", diff)
			}
		})
	}
}

// TestATrimmedObjectIsMaintainedAsTheWhole reads what the manager's cache holds of
// objects.
func TestATrimmedObjectIsMaintainedAsTheWhole(t *testing.T) {
	for name, req := range requests(t) {
		for _, u := range []*unstructured.Unstructured{req.Parent, req.Old, req.New} {
			if u == nil {
				continue
			}

			cached := u.DeepCopy()
			gate.Trim(cached, nil)

			if diff := cmp.Diff(stamp.Upkeep(u), stamp.Upkeep(cached)); diff != "" {
				t.Errorf("%s: Upkeep of %s %q, -whole, +cached:\n%s", name, u.GetKind(), u.GetName(), diff)
			}
		}
	}
}

// TestATrimmedResourceHasItsGateMovedAsTheWhole plans with what the manager's cache
// holds of managed resources.
func TestATrimmedResourceHasItsGateMovedAsTheWhole(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range all {
		if s.Gate == nil {
			continue
		}

		s.Object = s.Object.DeepCopy()
		gate.Trim(s.Object, nil)

		outcome, err := s.Outcome()
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}

		got, err := s.Renew(outcome)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}

		if diff := cmp.Diff(s.Written, got); diff != "" {
			t.Errorf("%s: plan of a trimmed resource, -whole, +trimmed:\n%s", s.Name, diff)
		}
	}
}
