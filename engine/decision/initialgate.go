// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// startGate gives a managed resource that somebody else than the composition
// function makes the set of management policies that the function would have
// given it, and records what was asked for instead. One that nobody may make is
// not gated: if it is stored all the same, that is because its Enforcement only
// shows it. But what is put below an XR is, and its gate is closed.
func startGate(in *inputs, j *judged, s *stamped) {
	if in.o.Operation != OperationCreate || in.by.isManager() {
		return
	}

	unallowed := j.findings[0].Verdict == Unallowed
	if unallowed && !putBelow(in.o, in.by, s.object) {
		return
	}

	// Where the kind has the field, its default is there if nothing else is.
	if _, ok := resource.Value(s.object.Object, "spec", "managementPolicies"); !ok || !resource.IsManaged(s.object) {
		return
	}

	if gate.HasDesired(s.object) || !unallowed && !gatedByPolicy(in.o, in.auth) && !gatedByEnforcement(in.enforced) {
		return
	}

	if gate.Audited(s.object) {
		return // Its Composition runs the function, which only reports.
	}

	have := setOf(s.object)

	shut := []string{gate.ActionObserve}

	asked := have
	if first, err := gate.ParseDesired(in.o.Asked); err == nil && first.Policies != nil &&
		(answeredSet(in.o, in.outside, first.Policies, have) || unallowed && gate.Same(have, shut)) {
		asked = first.Policies // What we answered before, to the same request.
	}

	annotate(s.object, v1alpha1.AnnotationDesiredPolicies, gate.FormatPolicies(asked))

	set := initial(in.outside, asked)
	if unallowed {
		set = shut
	}

	if !gate.Same(set, have) {
		setPolicies(s.object, set)
	}

	if in.o.Root && slices.Contains(set, gate.ActionCreate) {
		writeAllowances(s, in.problems, buildingUp(in.by, s.object), stillCarried(in.o.Old, in.places, j, false))
	}
}

// putBelow reports whether somebody else than Crossplane makes a managed resource of an owner that is gone, as from a backup, or of an XR
// that the composition function reports on. The garbage collector deletes the first, and with an open gate its external object.
func putBelow(o objects, by writer, object *unstructured.Unstructured) bool {
	if by.isCrossplane() || !resource.IsManaged(object) {
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
func answeredSet(o objects, outside outside, first, have []string) bool {
	set := initial(outside, first)
	if resource.Annotation(o.Asked, v1alpha1.AnnotationGate) == "" {
		return gate.Same(set, have)
	}

	return gate.Same(slices.Concat(set, have), have) && gate.Same(slices.Concat(first, have), first)
}

// recordGate records the gate of a managed resource that is made with it open, and has it wait for what becomes of that
// before it goes. Nobody has to write it later, when its provider writes it most.
func recordGate(o objects, by writer, outside outside, now time.Time, findings []Finding, s *stamped) {
	if !outside.gates || o.Operation != OperationCreate || findings[0].Verdict == Unallowed || by.isManager() || !gate.Governed(s.object) {
		return
	}

	plan := gate.First(s.object, outside.lateInitialize, now)
	if moveGate(s, plan) && !slices.Contains(s.object.GetFinalizers(), v1alpha1.Finalizer) {
		addFinalizer(s.object)
	}
}

// openGate opens the gate of a managed resource in the write of what it opens for, as Crossplane applies it. Nobody has to
// move it a moment later, when its provider writes it most, and the provider never sees one without the other.
func openGate(o objects, by writer, outside outside, now time.Time, s *stamped) {
	said := func(u *unstructured.Unstructured) string { return resource.Annotation(u, v1alpha1.AnnotationTrace) }
	if !outside.gates || o.Operation != OperationUpdate || !movable(o, by) || said(s.object) == said(o.Old) {
		return
	}

	if !gate.Same(setOf(s.object), setOf(o.Old)) {
		return // A pipeline asks for no set that a gate is moved to. The API server refuses that.
	}

	before := &unstructured.Unstructured{Object: maps.Clone(s.object.Object)}
	meta := maps.Clone(resource.Map(before.Object, "metadata"))
	meta["generation"] = resource.Generation(o.Old)
	before.Object["metadata"], before.Object["status"] = meta, o.Old.Object["status"]
	setPolicies(before, setOf(o.Old))

	plan := gate.Opening(before, outside.lateInitialize, now)
	if moveGate(s, plan) && gate.Same(setOf(s.object), setOf(o.Asked)) {
		s.overruled = slices.DeleteFunc(slices.Clone(s.overruled), func(field string) bool { return field == fieldPolicies })
	}
}

// keepOwners leaves who owns what as it is where all that Crossplane asks for is put back, for the composition function saw
// the gate before its last move. Nothing is written then, and the provider is not disturbed.
func keepOwners(o objects, by writer, changes []change.Change, s *stamped) {
	if o.Operation != OperationUpdate || !movable(o, by) || len(changes) > 0 || s.opens {
		return
	}

	allowances := func(u *unstructured.Unstructured) string {
		return resource.Annotation(u, v1alpha1.AnnotationAllowances)
	}
	if gate.Same(setOf(o.Asked), setOf(o.Old)) && allowances(o.Asked) == allowances(o.Old) {
		return
	}

	owners, ok := resource.Map(o.Old.Object, "metadata")["managedFields"]
	if meta := maps.Clone(resource.Map(s.object.Object, "metadata")); ok && meta != nil {
		meta["managedFields"] = owners
		s.object.Object["metadata"] = meta
	}
}

// moveGate has the gate moved by a plan, nil for none, with the request.
func moveGate(s *stamped, plan *gate.Plan) bool {
	if plan == nil {
		return false
	}

	text, err := allowance.FormatGate(plan.Record)
	if err != nil {
		return false // The manager reports it.
	}

	annotate(s.object, v1alpha1.AnnotationGate, text)

	if s.opens = true; !gate.Same(plan.Policies, setOf(s.object)) {
		setPolicies(s.object, plan.Policies)
	}

	return true
}

// fieldPolicies is the field that is a managed resource's gate.
const fieldPolicies = "spec.managementPolicies"

func setOf(u *unstructured.Unstructured) []string {
	return resource.Strings(u.Object, "spec", "managementPolicies")
}

// movable reports whether Crossplane applies a managed resource whose gate may be another one when that is stored.
func movable(o objects, by writer) bool {
	return by.applies() && gate.Governed(o.Old) && resource.Annotation(o.New, v1alpha1.AnnotationWish) != ""
}

// MovesGate reports whether a gate may be moved, or a deletion be blocked, with a request.
func MovesGate(req *Request) bool {
	return req.Basis.Settings.Gates && req.New != nil && (resource.IsManaged(req.New) || resource.Composing(req.New))
}

// buildingUp is what a root's provider may do to build it up, as what a parent
// that was never ready composes is.
func buildingUp(by writer, object *unstructured.Unstructured) []v1alpha1.Allowance {
	return []v1alpha1.Allowance{{
		Relation: v1alpha1.RelationExternal, Mutations: []string{gate.ActionCreate, gate.ActionUpdate},
		Generation: 1, ID: allowance.ID(1, 0), Initiator: by.User.Name,
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceCreation, Field: v1alpha1.MutationCreate},
		Trace:  []v1alpha1.Hop{{Kind: object.GetKind(), Name: resource.Name(object), Generation: 1, Field: v1alpha1.MutationCreate}},
	}}
}

// initial is the set a new managed resource starts with.
func initial(outside outside, asked []string) []string {
	return gate.Initial(asked, outside.lateInitialize)
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
func restoreGate(o objects, by writer, out *proposal) {
	if o.Operation != OperationUpdate || !movable(o, by) {
		return
	}

	was, is := setOf(o.Old), setOf(out.object)
	if !gate.Same(was, is) && gate.Moved(was) && gate.Moved(is) {
		setPolicies(out.object, was)
		out.overruled = append(out.overruled, fieldPolicies)

		if fields := gate.StayOwned(o.Old, out.object); fields != nil {
			meta := maps.Clone(resource.Map(out.object.Object, "metadata"))
			meta["managedFields"] = fields
			out.object.Object["metadata"] = meta
		}
	}
}

// gatedByPolicy reports whether a policy allows actions of the object's provider:
// one about the object itself, or one about its parent that allows changes of
// its kind.
func gatedByPolicy(o objects, auth *authority) bool {
	for _, p := range auth.Policies.For(o.groupKind()) {
		if allowsExternal(p) && p.Selects(auth.input()) {
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
		return a.Relation == v1alpha1.RelationExternal && len(gate.Acting(a.Mutations)) > 0
	})
}

// namedBy reports whether a policy about the parent, whatever its labels, allows
// changes of the object's kind.
func namedBy(o objects, p *policy.Policy) bool {
	gk := o.groupKind()

	return p.Spec().Match.ObjectSelector == nil && p.Spec().Match.NamespaceSelector == nil &&
		slices.ContainsFunc(p.Spec().Allow, func(a v1alpha1.Permission) bool {
			return a.Relation != v1alpha1.RelationExternal && a.Kind == gk.Kind && (a.APIGroup == "" || a.APIGroup == gk.Group)
		})
}

// gatedByEnforcement reports whether an Enforcement that does more than report
// governs the object.
func gatedByEnforcement(enforced enforced) bool {
	return slices.ContainsFunc(enforced.governing, func(e *enforcement.Enforcement) bool {
		return enforcement.Strictness(e.Action()) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
}
