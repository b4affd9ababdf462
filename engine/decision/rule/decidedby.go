// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// decidedBy is what allowed a change.
func decidedBy(policies *policy.Set, enforced input.Enforced, windows input.Windows, f finding.Finding) finding.Source {
	out := finding.Source{Kind: f.Kind(), Name: f.Policy}

	switch out.Kind {
	case v1alpha1.KindUpgrade:
		out.Generation = windows.GenerationOfWindow(f.Policy)
	case v1alpha1.KindEnforcement:
		name, _, _ := strings.Cut(f.Policy, "/")
		for _, e := range enforced.Governing {
			if e.Name() == name {
				out.Generation = e.Generation()
			}
		}
	default:
		out.Generation = generationOfPolicy(policies, windows, f.Policy)
	}

	return out
}

// generationOfPolicy is that of a policy, or of the window of its name whose
// allowance led to a change.
func generationOfPolicy(policies *policy.Set, windows input.Windows, name string) int64 {
	if p := policies.ByName(name); p != nil {
		return p.Generation()
	}

	return windows.GenerationOfWindow(name)
}

// lackingGeneration is the generation of the policy, or window, that lacks
// something.
func lackingGeneration(policies *policy.Set, windows input.Windows, l finding.Lack) int64 {
	if l.OfWindow() {
		return windows.GenerationOfWindow(l.Policy)
	}

	if p := policies.ByName(l.Policy); p != nil {
		return p.Generation()
	}

	for _, b := range policies.Broken() {
		if b.Name == l.Policy {
			return b.Generation
		}
	}

	return 0
}

// nameOwners adds to the fix of the last lack of each policy whom to ask.
func nameOwners(policies *policy.Set, lacks []finding.Lack) {
	for i, l := range lacks {
		p := policies.ByName(l.Policy)
		if l.OfWindow() || p == nil || p.Spec().Owner == nil ||
			slices.ContainsFunc(lacks[i+1:], func(later finding.Lack) bool { return later.Policy == l.Policy && !later.OfWindow() }) {
			continue
		}

		who := p.Spec().Owner.Name
		if contact := p.Spec().Owner.Contact; contact != "" {
			who += " (" + contact + ")"
		}

		ask := fmt.Sprintf("ask %s about policy %q", who, l.Policy)
		if l.Fix != "" {
			ask = l.Fix + "; " + ask
		}

		lacks[i].Fix = ask
	}
}

// implicit is the cause of what follows from a parent's creation or
// deletion: that entry of its trace, or else, for a creation, the newest. Without
// one it is due to the user who makes it.
func implicit(o request.Objects, by request.Writer, problems *request.Problems, field string) finding.Cause {
	out := finding.Cause{Initiator: by.User.Name, Propagated: true}
	if o.Parent == nil {
		return out
	}

	entries, err := allowance.ParseTrace(o.Parent)
	if err != nil {
		problems.Add(request.InObject(o.Parent, err))
	}

	i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Field == field })
	if i < 0 && field == v1alpha1.MutationCreate && len(entries) > 0 {
		i = 0
	}

	if i >= 0 {
		out.Initiator, out.Trace = entries[i].Initiator, o.Moved(entries[i].Trace)

		return out
	}

	out.Trace = o.Moved([]v1alpha1.Hop{{
		Kind: o.Parent.GetKind(), Name: resource.Name(o.Parent),
		Generation: resource.Generation(o.Parent), Field: field,
	}})

	return out
}
