// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
)

// TestNoStepOfADecisionModifiesTheObjectsOfAnother takes the steps of each scenario one by one.
func TestNoStepOfADecisionModifiesTheObjectsOfAnother(t *testing.T) {
	for name, req := range requests(t) {
		in, err := input.Read(req, request.Mutate)
		if err != nil {
			continue
		}

		read := copies(in.Objects)
		found := rule.Judge(in)
		left, taken := hold.TakeBack(in, found)

		if diff := cmp.Diff(read, copies(in.Objects)); diff != "" {
			t.Errorf("%s: to judge, or to take back, modifies what was read:\n%s", name, diff)
		}

		kept := copies(left.Objects)

		hold.Withhold(left, found, taken)
		stamp.Object(left, found, taken)

		if diff := cmp.Diff(kept, copies(left.Objects)); diff != "" {
			t.Errorf("%s: to stamp modifies what is left:\n%s", name, diff)
		}
	}
}

// copies are of the objects that a decision is about: as stored, as asked for, and as they may be stored.
func copies(o request.Objects) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{o.Old.DeepCopy(), o.Asked.DeepCopy(), o.New.DeepCopy(), o.Parent.DeepCopy()}
}
