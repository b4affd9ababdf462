// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
// shows it.
func (s *stamper) startGate() {
	if s.Operation != OperationCreate || s.findings[0].Verdict == Unallowed || s.byManager() {
		return
	}

	// Where the kind has the field, its default is there if nothing else is.
	if _, ok := resource.Value(s.object.Object, "spec", "managementPolicies"); !ok || !resource.IsManaged(s.object) {
		return
	}

	if resource.Annotation(s.object, v1alpha1.AnnotationManagementPolicies) != "" || !s.gatedByPolicy() && !s.gatedByEnforcement() {
		return
	}

	if resource.Annotation(s.object, v1alpha1.AnnotationMode) == string(v1alpha1.ModeAudit) {
		return // Its Composition runs the function, which only reports.
	}

	have := resource.Strings(s.object.Object, "spec", "managementPolicies")

	asked := have
	if first, err := allowance.ParseManagementPolicies(s.asked); err == nil && first != nil && gate.Same(s.initial(first), have) {
		asked = first // What we answered before, to the same request.
	}

	annotate(s.object, v1alpha1.AnnotationManagementPolicies, allowance.FormatList(asked))

	set := s.initial(asked)
	if !gate.Same(set, have) {
		setPolicies(s.object, set)
	}

	if s.root() && slices.Contains(set, gate.ActionCreate) {
		s.writeAllowances(s.buildingUp(), false)
	}
}

// buildingUp is what a root's provider may do to build it up, as what a parent
// that was never ready composes is.
func (s *stamper) buildingUp() []v1alpha1.Allowance {
	return []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{gate.ActionCreate, gate.ActionUpdate}, Generation: 1, Initiator: s.User.Name,
		Trace: []v1alpha1.Hop{{Kind: s.object.GetKind(), Name: resource.Name(s.object), Generation: 1, Field: v1alpha1.MutationCreate}},
	}}
}

// initial is the set a new managed resource starts with.
func (f *facts) initial(asked []string) []string {
	return gate.Initial(asked, !f.Settings.WithoutLateInitialize.Has(f.groupKind()))
}

// setPolicies sets the management policies of an object, and leaves what its spec
// shares with others as it is.
func setPolicies(u *unstructured.Unstructured, set []string) {
	spec := maps.Clone(resource.Map(u.Object, "spec"))
	spec["managementPolicies"] = resource.Values(set)
	u.Object["spec"] = spec
}

// restoreGate leaves the gate as it is where Crossplane applies what a composition
// function stamped before the gate was moved. That happens at nearly every allowed
// change, and a refusal would have Crossplane warn of it. Anybody else's write, and
// what a pipeline without the function asks for, the API server refuses.
func (p *proposer) restoreGate() {
	if p.Operation != OperationUpdate || !p.applies() || !gate.Governed(p.Old) || resource.Annotation(p.New, v1alpha1.AnnotationWish) == "" {
		return
	}

	was := resource.Strings(p.Old.Object, "spec", "managementPolicies")

	is := resource.Strings(p.out.object.Object, "spec", "managementPolicies")
	if !gate.Same(was, is) && gate.Moved(was) && gate.Moved(is) {
		setPolicies(p.out.object, was)
		p.out.overruled = append(p.out.overruled, "spec.managementPolicies")

		if fields := gate.StayOwned(p.Old, p.out.object); fields != nil {
			meta := maps.Clone(resource.Map(p.out.object.Object, "metadata"))
			meta["managedFields"] = fields
			p.out.object.Object["metadata"] = meta
		}
	}
}

// gatedByPolicy reports whether a policy allows actions of the object's provider:
// one about the object itself, or one about its parent that allows changes of
// its kind.
func (t *gating) gatedByPolicy() bool {
	for _, p := range t.Policies.For(t.groupKind()) {
		if allowsExternal(p) && p.Selects(t.input()) {
			return true
		}
	}

	if t.Parent == nil {
		return false
	}

	return slices.ContainsFunc(t.Policies.For(t.Parent.GroupVersionKind().GroupKind()), func(p *policy.Policy) bool {
		return allowsExternal(p) && t.namedBy(p)
	})
}

func allowsExternal(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
		return a.Relation == v1alpha1.RelationExternal && len(gate.Acting(a.Mutations)) > 0
	})
}

// namedBy reports whether a policy about the parent, whatever its labels, allows
// changes of the object's kind.
func (t *gating) namedBy(p *policy.Policy) bool {
	gk := t.groupKind()

	return p.Spec().Match.ObjectSelector == nil && p.Spec().Match.NamespaceSelector == nil &&
		slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
			return a.Relation != v1alpha1.RelationExternal && a.Kind == gk.Kind && (a.APIGroup == "" || a.APIGroup == gk.Group)
		})
}

// gatedByEnforcement reports whether an Enforcement that does more than report
// governs the object.
func (t *gating) gatedByEnforcement() bool {
	return slices.ContainsFunc(t.governing, func(e *enforcement.Enforcement) bool {
		return enforcement.Strictness(e.Action()) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
}
