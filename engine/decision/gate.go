// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// startGate gives a managed resource that somebody else than the composition
// function makes the set of management policies that the function would have
// given it, and records what was asked for instead. One that nobody may make is
// not gated: if it is stored all the same, that is because its Enforcement only
// tells of it.
func (d *decider) startGate() {
	if d.Operation != OperationCreate || d.decision.Findings[0].Verdict == Unallowed || d.User.Name == d.Settings.Manager {
		return
	}

	// Where the kind has the field, its default is there if nothing else is.
	if _, ok := resource.Value(d.New.Object, "spec", "managementPolicies"); !ok || !resource.IsManaged(d.New) {
		return
	}

	if resource.Annotation(d.New, v1alpha1.AnnotationManagementPolicies) != "" || !d.gatedByPolicy() && !d.gatedByEnforcement() {
		return
	}

	if resource.Annotation(d.New, v1alpha1.AnnotationMode) == string(v1alpha1.ModeAudit) {
		return // Its Composition runs the function, which only reports.
	}

	have := resource.Strings(d.New.Object, "spec", "managementPolicies")

	asked := have
	if first, err := allowance.ParseManagementPolicies(d.asked); err == nil && first != nil && gate.Same(d.initial(first), have) {
		asked = first // What we answered before, to the same request.
	}

	annotate(d.New, v1alpha1.AnnotationManagementPolicies, allowance.FormatList(asked))

	set := d.initial(asked)
	if !gate.Same(set, have) {
		d.setPolicies(set)
	}

	if d.root() && slices.Contains(set, gate.ActionCreate) {
		d.writeAllowances(d.buildingUp())
	}
}

// buildingUp is what a root's provider may do to build it up, as what a parent
// that was never ready composes is.
func (d *decider) buildingUp() []v1alpha1.Allowance {
	return []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{gate.ActionCreate, gate.ActionUpdate}, Generation: 1, Initiator: d.User.Name,
		Trace: []v1alpha1.Hop{{Kind: d.New.GetKind(), Name: resource.Name(d.New), Generation: 1, Field: v1alpha1.MutationCreate}},
	}}
}

// initial is the set a new managed resource starts with.
func (d *decider) initial(asked []string) []string {
	return gate.Initial(asked, !d.Settings.WithoutLateInitialize.Has(d.groupKind()))
}

func (d *decider) setPolicies(set []string) {
	spec := maps.Clone(resource.Map(d.New.Object, "spec"))
	spec["managementPolicies"] = resource.Values(set)
	d.New.Object["spec"] = spec
}

// keepGate leaves the gate as it is where Crossplane applies what a composition
// function stamped before the gate was moved. That happens at nearly every allowed
// change, and a refusal would have Crossplane warn of it. Anybody else's write, and
// what a pipeline without the function asks for, the API server refuses.
func (d *decider) keepGate() {
	if d.Operation != OperationUpdate || !d.applies() || !gate.Governed(d.Old) || resource.Annotation(d.asked, v1alpha1.AnnotationWish) == "" {
		return
	}

	was, is := resource.Strings(d.Old.Object, "spec", "managementPolicies"), resource.Strings(d.New.Object, "spec", "managementPolicies")
	if !gate.Same(was, is) && gate.Moved(was) && gate.Moved(is) {
		d.setPolicies(was)
		d.decision.Overruled = append(d.decision.Overruled, "spec.managementPolicies")

		if fields := gate.StayOwned(d.Old, d.New); fields != nil {
			meta := maps.Clone(resource.Map(d.New.Object, "metadata"))
			meta["managedFields"] = fields
			d.New.Object["metadata"] = meta
		}
	}
}

// gatedByPolicy says whether a policy allows actions of the object's provider:
// one about the object itself, or one about its parent that allows changes of
// its kind.
func (d *decider) gatedByPolicy() bool {
	for _, p := range d.Policies.For(d.groupKind()) {
		if allowsExternal(p) && p.Selects(d.input()) {
			return true
		}
	}

	if d.Parent == nil {
		return false
	}

	return slices.ContainsFunc(d.Policies.For(d.Parent.GroupVersionKind().GroupKind()), func(p *policy.Policy) bool {
		return allowsExternal(p) && d.namedBy(p)
	})
}

func allowsExternal(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
		return a.Relation == v1alpha1.RelationExternal && len(gate.Acting(a.Mutations)) > 0
	})
}

// namedBy says whether a policy about the parent, whatever its labels, allows
// changes of the object's kind.
func (d *decider) namedBy(p *policy.Policy) bool {
	gk := d.groupKind()

	return p.Spec().Match.ObjectSelector == nil && p.Spec().Match.NamespaceSelector == nil &&
		slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
			return a.Relation != v1alpha1.RelationExternal && a.Kind == gk.Kind && (a.APIGroup == "" || a.APIGroup == gk.Group)
		})
}

// gatedByEnforcement says whether an Enforcement that does more than tell
// governs the object.
func (d *decider) gatedByEnforcement() bool {
	return slices.ContainsFunc(d.governing, func(e *enforcement.Enforcement) bool {
		return enforcement.Strictness(e.Action()) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
}
