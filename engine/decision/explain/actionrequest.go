// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// ActionRequest asks whether an action may be taken in the system behind an
// object, as the object is stored: who is about to run terraform apply, or to sync,
// asks before.
type ActionRequest struct {
	// Basis that it is decided by: of it no Enforcements and no settings.
	Basis request.Basis

	// Object as it is stored.
	Object *unstructured.Unstructured
	// Action such as apply, sync, or a managed resource's Update.
	Action string
}

// ActionAnswer is the answer.
type ActionAnswer struct {
	// Allowed is true where the action may be taken.
	Allowed bool
	// By are the allowances that say so.
	By []v1alpha1.Allowance
	// Missing says why it may not, and what helps, for a person.
	Missing []string
}

// DecideAction answers. The error names an annotation that does not parse: then
// nothing is allowed.
func DecideAction(req ActionRequest) (ActionAnswer, error) {
	u := req.Object

	// 1. What nobody allowed is stored, and would go out as well.
	unasked, err := unasked(u)
	if err != nil || len(unasked) > 0 {
		return ActionAnswer{Missing: unasked}, err
	}

	// 2. What Crossplane does, a gate lets through.
	if len(allowance.OfOtherSystems([]string{req.Action})) == 0 {
		return throughGate(u, req.Action)
	}

	// 3. What was allowed with a change, unless another one has come since.
	list, err := allowance.Parse(u)
	if err != nil {
		return ActionAnswer{}, err
	}

	by := slices.DeleteFunc(allowance.Unserved(u, list), func(a v1alpha1.Allowance) bool {
		return !allowance.External(a) || !slices.Contains(a.Mutations, req.Action) ||
			allowance.ByDeletion(a) && !resource.Deleting(u) || !req.stillGiven(a)
	})

	since, err := req.changedSince(by)
	if err != nil {
		return ActionAnswer{}, err
	}

	if len(by) > 0 && len(since) == 0 {
		return ActionAnswer{Allowed: true, By: by}, nil
	}

	// 4. What a window gives by itself.
	if w := req.giver(); w != nil {
		return ActionAnswer{Allowed: true, By: []v1alpha1.Allowance{{
			Relation: v1alpha1.RelationExternal, Mutations: []string{req.Action},
			Generation: resource.Generation(u), ID: allowance.ID(resource.Generation(u), 0), Initiator: input.InitiatorOfWindow(w.Object.GetName()),
			Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceWindow, Name: w.Object.GetName()},
		}}}, nil
	}

	for i, e := range since {
		since[i] = fmt.Sprintf("%s, and that does not let %s out", e, req.Action)
	}

	return ActionAnswer{Missing: append(since, req.remedies()...)}, nil
}

// unasked says what is stored in an object though nobody allowed it.
func unasked(u *unstructured.Unstructured) ([]string, error) {
	var out []string

	edits, err := allowance.ParseStored(u)
	if err != nil {
		return nil, err
	}

	for _, e := range edits {
		if e.Stored.Approvals > 0 {
			out = append(out, fmt.Sprintf("%s was changed by %s, which needs the approval of %s",
				e.Field, allowance.Author(e), authority.Others(e.Stored.Approvals)))

			continue
		}

		out = append(out, fmt.Sprintf("%s was changed by %s without permission. Revert it, or ask someone with permission to change it",
			e.Field, allowance.Author(e)))
	}

	return out, nil
}

// throughGate reports whether a managed resource's gate is open for an action.
func throughGate(u *unstructured.Unstructured, action string) (ActionAnswer, error) {
	rec, err := allowance.ParseGate(u)

	switch {
	case err != nil:
		return ActionAnswer{}, err
	case !resource.IsManaged(u):
		return ActionAnswer{Missing: []string{fmt.Sprintf(
			"%s is an action of Crossplane's providers, which gates allow: ask about a managed resource", action)}}, nil
	case management.Governed(u) && rec != nil && rec.State == v1alpha1.GateOpen && slices.Contains(rec.Actions, action):
		return ActionAnswer{Allowed: true, By: rec.Allowances}, nil
	case rec != nil && rec.State == v1alpha1.GateUngated:
		return ActionAnswer{Allowed: true}, nil
	default:
		return ActionAnswer{Missing: []string{fmt.Sprintf("its gate is not open for %s: an allowed change of it opens the gate", action)}}, nil
	}
}

// stillGiven reports whether what gave an allowance still does: it lasts, so it may have
// been taken away since.
func (r ActionRequest) stillGiven(a v1alpha1.Allowance) bool {
	if a.Source.Type == v1alpha1.SourceWindow {
		return slices.ContainsFunc(r.Basis.Upgrades, func(w *allowance.Window) bool {
			return w.Object.GetName() == a.Source.Name && w.InForce(r.Basis.Now)
		})
	}

	p := r.Basis.Policies.ByName(a.Policy)

	return a.Policy == "" || p != nil && len(p.External([]string{r.Action})) > 0
}

// changedSince says which allowed changes of the object are not among those that some
// allowances were given with: newer ones, or of the same request by another policy;
// or how it was changed where there are none.
func (r ActionRequest) changedSince(list []v1alpha1.Allowance) ([]string, error) {
	entries, err := allowance.ParseTrace(r.Object)
	if err != nil {
		return nil, err
	}

	// An entry as the allowance that would have been given with it.
	with := func(e v1alpha1.TraceEntry) v1alpha1.Allowance {
		var request int64
		if n := len(e.Trace); n > 0 {
			request = e.Trace[n-1].Request
		}

		return v1alpha1.Allowance{Generation: e.Generation, ID: allowance.ID(e.Generation, request)}
	}

	let := func(e v1alpha1.TraceEntry) bool {
		return slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool {
			age := allowance.CompareAge(a, with(e))

			return age > 0 || age == 0 && r.about(a, e.Field)
		})
	}

	var out []string

	for _, e := range entries {
		if !let(e) && e.Field != v1alpha1.MutationDelete && !strings.HasPrefix(e.Field, "metadata.") {
			out = append(out, fmt.Sprintf("%s was changed at generation %d, as %s asked", e.Field, e.Generation, e.Initiator))
		}
	}

	return out[:min(len(out), finding.MaxRefused)], nil
}

// about reports whether the policy of an allowance is about a field of the object: names
// it there, or allows it below what it names. Of what no policy is known any.
func (r ActionRequest) about(a v1alpha1.Allowance, field string) bool {
	p := r.Basis.Policies.ByName(a.Policy)

	path, err := fieldpath.Parse(field)
	if p == nil || err != nil {
		return true
	}

	gk, c := r.Object.GroupVersionKind().GroupKind(), change.Change{Path: path, Field: field}

	return p.About(gk, field) || p.Allows(gk, c)
}

// gives reports whether a window is about the object and gives the action by itself,
// in force or not.
func (r ActionRequest) gives(w *allowance.Window) bool {
	return slices.Contains(allowance.ActionsOfWindow(w.Object), r.Action) && w.Selects(r.Object)
}

// giver is the window that allows the action, the first by name; nil for none.
func (r ActionRequest) giver() *allowance.Window {
	var out *allowance.Window

	for _, w := range r.Basis.Upgrades {
		if r.gives(w) && w.InForce(r.Basis.Now) && (out == nil || w.Object.GetName() < out.Object.GetName()) {
			out = w
		}
	}

	return out
}

// remedies say who or what could allow the action.
func (r ActionRequest) remedies() []string {
	var out []string

	gk := r.Object.GroupVersionKind().GroupKind()

	for _, p := range r.Basis.Policies.All() {
		spec := p.Spec()

		external := slices.ContainsFunc(spec.Allow, func(a v1alpha1.Permission) bool {
			return a.Relation == v1alpha1.RelationExternal && slices.Contains(a.Mutations, r.Action)
		})
		if !external {
			continue
		}

		about := policy.IsAbout(&spec.Match, gk)
		below := slices.ContainsFunc(spec.Allow, func(a v1alpha1.Permission) bool {
			return a.Relation != v1alpha1.RelationExternal && a.Kind == gk.Kind && (a.APIGroup == "" || a.APIGroup == gk.Group)
		})

		if about || below {
			out = append(out, fmt.Sprintf("AllowancePolicy %q allows it with a change of %s of %s that it allows: none is on record here",
				p.Name(), change.Text(strings.Join(spec.Match.Fields, ", "), finding.MaxFields), policy.DescribeKinds(&spec.Match)))
		}
	}

	for _, w := range r.Basis.Upgrades {
		if !r.gives(w) {
			continue
		}

		why := "is not in force"
		if w.Object.Spec.Suspend {
			why = "is suspended"
		}

		out = append(out, fmt.Sprintf("UpgradeAllowance %q allows it, and %s", w.Object.GetName(), why))
	}

	if len(out) == 0 {
		out = append(out, fmt.Sprintf("no policy allows it: add an AllowancePolicy about %s, or about what owns it, "+
			"that allows {relation: External, mutations: [%s]}", gk.Kind, r.Action))
	}

	slices.Sort(out)

	return out
}
