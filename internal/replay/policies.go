// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Policies are what decisions are made by in the place of what they were made by. The zero
// value leaves all as it was.
type Policies struct {
	// Objects replace all that were in force of the kinds of which there are any here.
	inforce.Objects

	// Enforce has what is in Shadow mode be in force.
	Enforce bool
}

// given reports whether decisions are made by other policies than they were.
func (p *Policies) given() bool {
	return p.Enforce || len(p.Policies)+len(p.Bindings)+len(p.Windows)+len(p.Enforcements) > 0
}

// Check returns why some of them cannot be used.
func (p *Policies) Check() error { return errors.Join(inforce.NewCache().Set(p.Objects).Bad...) }

// of are those that a decision is made by, where others were in force.
func (p *Policies) of(was inforce.Objects, by decisionlog.By) inforce.Objects {
	if len(p.Policies) > 0 {
		was.Policies = p.policies(was.Policies, by)
	}

	// Chains start at the webhook: a function reads no bindings.
	if len(p.Bindings) > 0 && by.Part != decisionlog.PartFunction {
		was.Bindings = p.Bindings
	}

	if len(p.Windows) > 0 {
		was.Windows = p.windows(was.Windows)
	}

	if len(p.Enforcements) > 0 {
		was.Enforcements = slices.Clone(p.Enforcements)

		for i := range was.Enforcements {
			was.Enforcements[i].Generation = 0 // That of another cluster says nothing.
		}
	}

	if p.Enforce {
		was.Policies = inforce.Enforced(was.Policies)
	}

	return was
}

// policies are those that are given and that who decided reads, with the generations of
// those that were in force and say the same.
func (p *Policies) policies(was []v1alpha1.AllowancePolicy, by decisionlog.By) []v1alpha1.AllowancePolicy {
	selector := labels.Everything()
	if by.Composite != nil {
		selector = labels.SelectorFromSet(by.Composite.PolicySelector)
	}

	out := make([]v1alpha1.AllowancePolicy, 0, len(p.Policies))

	for _, one := range p.Policies {
		if !selector.Matches(labels.Set(one.GetLabels())) {
			continue
		}

		one.Generation = 0

		if i := slices.IndexFunc(was, func(o v1alpha1.AllowancePolicy) bool { return o.GetName() == one.GetName() }); i >= 0 {
			one.Generation = was[i].GetGeneration()
		}

		out = append(out, one)
	}

	return out
}

// windows are those that are given. One that says the same as one of its name did is active
// where that was.
func (p *Policies) windows(was []v1alpha1.UpgradeAllowance) []v1alpha1.UpgradeAllowance {
	out := slices.Clone(p.Windows)

	for i := range out {
		out[i].Generation, out[i].Status = 0, v1alpha1.UpgradeAllowanceStatus{}

		if k := slices.IndexFunc(was, sameWindow(&out[i])); k >= 0 {
			out[i].UID, out[i].Generation, out[i].Status = was[k].UID, was[k].Generation, was[k].Status
		}
	}

	return out
}

func sameWindow(w *v1alpha1.UpgradeAllowance) func(v1alpha1.UpgradeAllowance) bool {
	return func(o v1alpha1.UpgradeAllowance) bool {
		return o.GetName() == w.GetName() && equality.Semantic.DeepEqual(o.Spec, w.Spec)
	}
}

// unsure are the windows that are given and of which a log does not say whether they would
// have been active: that depends on what ran in the cluster.
func (p *Policies) unsure(was []v1alpha1.UpgradeAllowance) []v1alpha1.UpgradeAllowance {
	var out []v1alpha1.UpgradeAllowance

	for i := range p.Windows {
		if w := p.Windows[i]; w.Spec.ActivateWhen != nil && !w.Spec.Suspend && !slices.ContainsFunc(was, sameWindow(&w)) {
			out = append(out, w)
		}
	}

	return out
}
