// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// request is which request within its generation a change of the object is: 0
// where it makes the generation. A deletion needs no number, for there is one.
func (d *decider) request(generation int64) int64 {
	if d.Operation != OperationUpdate {
		return 0
	}

	if was := resource.Generation(d.Old); was > 0 && generation > was {
		return 0
	}

	return allowance.LastRequest(d.Old, generation) + 1
}

// until is when what a change allows to create and to delete ends; nil where it
// will be seen that it has served.
func (d *decider) until(hop v1alpha1.Hop) *metav1.Time {
	if d.Operation != OperationUpdate {
		return nil
	}

	if _, settles := resource.SettledGeneration(d.Old); settles || hop.Request == 0 && resource.ObservedGeneration(d.Old) > 0 {
		return nil
	}

	until := metav1.NewTime(d.Now.Add(v1alpha1.MaxUnobserved).UTC().Truncate(time.Second))

	return &until
}

// usedUp says whether an allowance of the parent of which nothing else tells when
// it has served has done so, as far as this change of this child is concerned: a
// child uses it once. What is created or deleted leaves nothing to tell by; there
// it ends in time, and one that a creation gave with the phase that follows it.
func (d *decider) usedUp(a v1alpha1.Allowance, c change.Change) bool {
	switch {
	case c.Field != v1alpha1.MutationCreate && c.Field != v1alpha1.MutationDelete:
		return allowance.Used(d.trace(), a)
	case a.Until == nil:
		return resource.SeenReady(d.Parent)
	default:
		return !d.Now.Before(a.Until.Time)
	}
}

// usable are the allowances of the parent of which the trace of a child tells
// whether it has used them.
func (d *decider) usable() []v1alpha1.Allowance {
	if d.ParentSettles {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(d.parentAllowances), func(a v1alpha1.Allowance) bool {
		return allowance.External(a) || allowance.Consumed(d.Parent, a) || !allowance.ByUse(d.Parent, a)
	})
}
