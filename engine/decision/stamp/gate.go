// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// startGate gives a managed resource that somebody else than the composition
// function makes the set of management policies that the function would have
// given it, and records what was asked for instead. One that nobody may make is
// not gated: if it is stored all the same, that is because its Enforcement only
// shows it. But what is put below an XR is, and its gate is closed.
func startGate(in *input.Inputs, j *rule.Judged, s *Stamped) {
	if in.Objects.Operation != request.OperationCreate || in.Writer.IsManager() {
		return
	}

	unallowed := j.Findings[0].Verdict == finding.Unallowed
	if unallowed && !putBelow(in.Objects, in.Writer, s.Object) {
		return
	}

	// Where the kind has the field, its default is there if nothing else is.
	if _, ok := resource.Value(s.Object.Object, "spec", "managementPolicies"); !ok || !resource.IsManaged(s.Object) {
		return
	}

	if management.HasDesired(s.Object) || !unallowed && !gatedByPolicy(in.Objects, in.Authority) && !gatedByEnforcement(in.Enforced) {
		return
	}

	if management.Audited(s.Object) {
		return // Its Composition runs the function, which only reports.
	}

	have := input.SetOf(s.Object)

	shut := []string{management.ActionObserve}

	asked := have
	if first, err := management.ParseDesired(in.Objects.Asked); err == nil && first.Policies != nil &&
		(answeredSet(in.Objects, in.External, first.Policies, have) || unallowed && management.Same(have, shut)) {
		asked = first.Policies // What we answered before, to the same request.
	}

	input.Annotate(s.Object, v1alpha1.AnnotationDesiredPolicies, management.FormatPolicies(asked))

	set := initial(in.External, asked)
	if unallowed {
		set = shut
	}

	if !management.Same(set, have) {
		input.SetPolicies(s.Object, set)
	}

	if in.Objects.Root && slices.Contains(set, management.ActionCreate) {
		writeAllowances(s, in.Problems, buildingUp(in.Writer, s.Object), stillCarried(in.Objects.Old, in.Places, j, false))
	}
}

// putBelow reports whether somebody else than Crossplane makes a managed resource of an owner that is gone, as from a backup, or of an XR
// that the composition function reports on. The garbage collector deletes the first, and with an open gate its external object.
func putBelow(o request.Objects, by request.Writer, object *unstructured.Unstructured) bool {
	if by.IsCrossplane() || !resource.IsManaged(object) {
		return false
	}

	_, owned := resource.ParentOf(object)
	if o.Parent == nil {
		return owned && o.ParentGone
	}

	_, reports := resource.ProgressOf(o.Parent)

	return owned && reports
}

// answeredSet reports whether a set is what we may have answered to one who asked for another: the first one, or one that
// was moved with its record.
func answeredSet(o request.Objects, outside request.External, first, have []string) bool {
	set := initial(outside, first)
	if resource.Annotation(o.Asked, v1alpha1.AnnotationGate) == "" {
		return management.Same(set, have)
	}

	return management.Same(slices.Concat(set, have), have) && management.Same(slices.Concat(first, have), first)
}

// recordGate records the gate of a managed resource that is made with it open, and has it wait for what becomes of that
// before it goes. Nobody has to write it later, when its provider writes it most.
func recordGate(o request.Objects, by request.Writer, outside request.External, now time.Time, findings []finding.Finding, s *Stamped) {
	if !outside.Gates || o.Operation != request.OperationCreate || findings[0].Verdict == finding.Unallowed || by.IsManager() ||
		!management.Governed(s.Object) {
		return
	}

	plan := gate.First(s.Object, outside.LateInitialize, now)
	if moveGate(s, plan) && !slices.Contains(s.Object.GetFinalizers(), v1alpha1.Finalizer) {
		input.AddFinalizer(s.Object)
	}
}

// openGate opens the gate of a managed resource in the write of what it opens for, as Crossplane applies it. Nobody has to
// move it a moment later, when its provider writes it most, and the provider never sees one without the other.
func openGate(o request.Objects, by request.Writer, outside request.External, now time.Time, s *Stamped) {
	said := func(u *unstructured.Unstructured) string { return resource.Annotation(u, v1alpha1.AnnotationTrace) }
	if !outside.Gates || o.Operation != request.OperationUpdate || !input.Movable(o, by) || said(s.Object) == said(o.Old) {
		return
	}

	if !management.Same(input.SetOf(s.Object), input.SetOf(o.Old)) {
		return // A pipeline asks for no set that a gate is moved to. The API server refuses that.
	}

	before := &unstructured.Unstructured{Object: maps.Clone(s.Object.Object)}
	meta := maps.Clone(resource.Map(before.Object, "metadata"))
	meta["generation"] = resource.Generation(o.Old)
	before.Object["metadata"], before.Object["status"] = meta, o.Old.Object["status"]
	input.SetPolicies(before, input.SetOf(o.Old))

	plan := gate.Opening(before, outside.LateInitialize, now)
	if moveGate(s, plan) && management.Same(input.SetOf(s.Object), input.SetOf(o.Asked)) {
		s.Overruled = slices.DeleteFunc(slices.Clone(s.Overruled), func(field string) bool { return field == input.FieldPolicies })
	}
}

// keepOwners leaves who owns what as it is where all that Crossplane asks for is put back, for the composition function saw
// the gate before its last move. Nothing is written then, and the provider is not disturbed.
func keepOwners(o request.Objects, by request.Writer, changes []change.Change, s *Stamped) {
	if o.Operation != request.OperationUpdate || !input.Movable(o, by) || len(changes) > 0 || s.Opens {
		return
	}

	allowances := func(u *unstructured.Unstructured) string {
		return resource.Annotation(u, v1alpha1.AnnotationAllowances)
	}
	if management.Same(input.SetOf(o.Asked), input.SetOf(o.Old)) && allowances(o.Asked) == allowances(o.Old) {
		return
	}

	owners, ok := resource.Map(o.Old.Object, "metadata")["managedFields"]
	if meta := maps.Clone(resource.Map(s.Object.Object, "metadata")); ok && meta != nil {
		meta["managedFields"] = owners
		s.Object.Object["metadata"] = meta
	}
}

// moveGate has the gate moved by a plan, nil for none, with the request.
func moveGate(s *Stamped, plan *gate.Plan) bool {
	if plan == nil {
		return false
	}

	text, err := allowance.FormatGate(plan.Record)
	if err != nil {
		return false // The manager reports it.
	}

	input.Annotate(s.Object, v1alpha1.AnnotationGate, text)

	if s.Opens = true; !management.Same(plan.Policies, input.SetOf(s.Object)) {
		input.SetPolicies(s.Object, plan.Policies)
	}

	return true
}

// buildingUp is what a root's provider may do to build it up, as what a parent
// that was never ready composes is.
func buildingUp(by request.Writer, object *unstructured.Unstructured) []v1alpha1.Allowance {
	return []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{management.ActionCreate, management.ActionUpdate},
		Generation: 1, ID: allowance.ID(1, 0), Initiator: by.User.Name,
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceCreation, Field: v1alpha1.MutationCreate},
		Trace:  []v1alpha1.Hop{{Kind: object.GetKind(), Name: resource.Name(object), Generation: 1, Field: v1alpha1.MutationCreate}},
	}}
}

// initial is the set a new managed resource starts with.
func initial(outside request.External, asked []string) []string {
	return management.Initial(asked, outside.LateInitialize)
}

// gatedByPolicy reports whether a policy allows actions of the object's provider:
// one about the object itself, or one about its parent that allows changes of
// its kind.
func gatedByPolicy(o request.Objects, auth *authority.Authority) bool {
	for _, p := range auth.Policies.For(o.GroupKind()) {
		if allowsExternal(p) && p.Selects(auth.Input()) {
			return true
		}
	}

	if o.Parent == nil {
		return false
	}

	return slices.ContainsFunc(auth.Policies.For(o.Parent.GroupVersionKind().GroupKind()), func(p *policy.Policy) bool {
		return allowsExternal(p) && namedBy(o, p)
	})
}

func allowsExternal(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
		return a.Relation == v1alpha1.RelationExternal && len(management.Acting(a.Mutations)) > 0
	})
}

// namedBy reports whether a policy about the parent, whatever its labels, allows
// changes of the object's kind.
func namedBy(o request.Objects, p *policy.Policy) bool {
	gk := o.GroupKind()

	return p.Spec().Match.ObjectSelector == nil && p.Spec().Match.NamespaceSelector == nil &&
		slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
			return a.Relation != v1alpha1.RelationExternal && a.Kind == gk.Kind && (a.APIGroup == "" || a.APIGroup == gk.Group)
		})
}

// gatedByEnforcement reports whether an Enforcement that does more than report
// governs the object.
func gatedByEnforcement(enforced input.Enforced) bool {
	return slices.ContainsFunc(enforced.Governing, func(e *enforcement.Enforcement) bool {
		return enforcement.Strictness(e.Action()) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
}
