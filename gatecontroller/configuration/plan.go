// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// observed is what is read before it is planned what follows.
type observed struct {
	// want is what is asked for.
	want admission.Config
	// served are all kinds that the API server serves, listed those that discovery
	// lists now.
	served, listed []kind.Served
	// named are the kinds that policies and windows name, and enforced those that
	// Enforcements cover; of these it is known which are managed resources.
	named    []kind.Served
	enforced []admission.Enforced
	// gated are the kinds that are to be gated and guarded, watched those that are
	// to be watched.
	gated, watched []kind.Served
	// usages are the kinds that show which resource uses which configuration.
	usages []kind.Served
	// stamped are the kinds that the webhook is asked about.
	stamped []admission.GovernedKind
	// bindings is true where there are AllowanceBindings.
	bindings bool
	// gates is true where gates are switched on.
	gates bool
}

// plan is what follows from what was observed; never modified.
type plan struct {
	observed observed

	// guards to apply.
	guards []admission.Guard
	// governed are what the webhook is to be asked about.
	governed []admission.GovernedKind
	// missing are the kinds that nothing serves, unknown those that discovery does
	// not list.
	missing, unknown []kind.Name
}

// planFor plans what follows. It reads nothing.
func planFor(o observed, hooks admission.Options) *plan {
	p := &plan{observed: o}
	names := o.want.Names()

	_, p.missing = kind.Named(o.served, names)
	_, p.unknown = kind.Named(o.listed, names)

	p.guards = append(admission.DefinitionGuards(o.bindings), admission.BindGuard(), admission.ParameterGuard())
	if o.gates {
		p.guards = append(p.guards, hooks.Guards(o.gated, o.usages)...)
	}

	p.governed = admission.Awaited(admission.GovernedKinds(o.want, kind.Union(o.named, o.gated), o.enforced), o.stamped, names)
	p.guards = append(p.guards, hooks.ApprovalGuard(), hooks.PendingGuard(), hooks.HeldGuard(p.held()))

	return p
}

// kept are the kinds that are not to go before the managed resources that they are of.
func (p *plan) kept() []kind.Served {
	if !p.observed.gates {
		return nil
	}

	return p.observed.usages
}

// held are the kinds whose objects may say what is held: those that the webhook is asked
// about, and those for whose XRs the function runs.
func (p *plan) held() []kind.Served {
	out := make([]kind.Served, len(p.governed))
	for i, g := range p.governed {
		out[i] = g.Served
	}

	return kind.Union(out, p.observed.watched)
}

// parentKinds are the kinds of which something may follow, and those that have
// gates. The others are not watched.
func parentKinds(want admission.Config, named []kind.Served, enforced []admission.Enforced) []kind.Served {
	var out []kind.Served

	want = want.InForce()

	for _, k := range named {
		parent := slices.ContainsFunc(want.Policies, func(p v1alpha1.AllowancePolicy) bool {
			return policy.IsAbout(&p.Spec.Match, k.GVK.GroupKind())
		})

		if parent || k.Gated() {
			out = append(out, k)
		}
	}

	for _, e := range enforced {
		for _, k := range e.Kinds {
			if k.Gated() && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}

	return out
}
