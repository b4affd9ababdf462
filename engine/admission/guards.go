// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// Guard is a ValidatingAdmissionPolicy and its binding. They run inside the API
// server, so that no outage of ours lets anything through.
type Guard struct {
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// Empty reports whether the guard has no kinds, and is to be deleted.
func (p Guard) Empty() bool { return len(p.Policy.Spec.MatchConstraints.ResourceRules) == 0 }

// bound binds a guard to its parameters, if it takes any.
func bound(guard *admissionregistrationv1.ValidatingAdmissionPolicy, params *admissionregistrationv1.ParamRef) Guard {
	return Guard{Policy: guard, Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: guard.GetName()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        guard.GetName(),
			ParamRef:          params,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}}
}

// Guards builds the guards of the managed resources among some kinds, and of what
// shows which provider's configuration they use.
func (h Options) Guards(kinds, usages []kind.Served) []Guard {
	var without []string

	writes, deletes := rules{}, rules{}

	for _, k := range kinds {
		if !k.Managed {
			continue
		}

		for _, version := range strings.FieldsFunc(k.Without, func(r rune) bool { return r == ',' }) {
			without = append(without, strconv.Quote(k.Resource+"."+version+"."+k.GVK.Group)+": "+strconv.Quote(k.GVK.Version))
		}

		writes.add(k.GVK.Group, k.Resource, opCreate, opUpdate)
		deletes.add(k.GVK.Group, k.Resource, opDelete)
	}

	return []Guard{
		bound(h.writerGuard(namedRules(writes), without), nil),
		bound(deleteGuard(namedRules(deletes)), nil),
		bound(usageGuard(usages, namedRules(deletes)), nil),
	}
}

func namedRules(r rules) []admissionregistrationv1.NamedRuleWithOperations {
	list := r.list()
	out := make([]admissionregistrationv1.NamedRuleWithOperations, len(list))

	for i := range list {
		out[i].RuleWithOperations = list[i]
	}

	return out
}

// Expressions of the guards. A managed resource is governed when its
// Composition runs the function, its gate has a record, or an annotation is not of this version.
const (
	marked = "has(%[1]s.metadata.annotations) && %[1]s.metadata.annotations.exists(k, k == %[2]q || " +
		"k == %[3]q && !(%[1]s.metadata.annotations[k] in [%[4]s]) || k.startsWith(%[5]q) && !(k in [%[6]s]))"

	// Where its change says why, Kausality may have opened the gate with it.
	opens = "request.userInfo.username == %[1]q && " + gatedBefore + " && " + gatedAfter + " && " +
		closedBefore + " && !(" + closedAfter + ") && " +
		"object.metadata.annotations[%[2]q] != oldObject.metadata.annotations[%[2]q] && " +
		"object.metadata.?annotations[?%[3]q].orValue('') != oldObject.metadata.?annotations[?%[3]q].orValue('')"

	// A record of a gate, and not of none.
	gatedBefore = "!(oldObject.metadata.?annotations[?%[2]q].orValue('') in ['', %[4]s])"
	gatedAfter  = "!(object.metadata.?annotations[?%[2]q].orValue('') in ['', %[4]s])"

	closedBefore = "has(oldObject.spec.managementPolicies) && oldObject.spec.managementPolicies.all(a, a in ['Observe', 'LateInitialize'])"
	closedAfter  = "has(object.spec.managementPolicies) && object.spec.managementPolicies.all(a, a in ['Observe', 'LateInitialize'])"

	ungatedBefore = "oldObject.metadata.?annotations[?%q].orValue('') in [%s]"

	unchangedPolicies = "request.operation != 'UPDATE' || (has(object.spec.managementPolicies) == has(oldObject.spec.managementPolicies) && " +
		"(!has(object.spec.managementPolicies) || object.spec.managementPolicies == oldObject.spec.managementPolicies))"

	startsBounded = "request.operation != 'CREATE' || " +
		"(has(object.spec.managementPolicies) && !object.spec.managementPolicies.exists(a, a == '*'))"

	unchangedRecord = "request.operation != 'UPDATE' || !has(oldObject.metadata.annotations) || " +
		"!(%[1]q in oldObject.metadata.annotations) || " +
		"(has(object.metadata.annotations) && %[1]q in object.metadata.annotations && " +
		"object.metadata.annotations[%[1]q] == oldObject.metadata.annotations[%[1]q]) || " + removedWhileClosed

	// The webhook keeps a record that it understands. Of any other one only that of a closed gate is removed.
	removedWhileClosed = "((!has(object.metadata.annotations) || !(%[1]q in object.metadata.annotations)) && " +
		closedBefore + ")"

	// Who read a change of what the provider acts upon noted it, unless there
	// is no gate to hold it.
	traced = "request.operation != 'UPDATE' || (%[1]s) || %[3]s || " +
		"(object.spec.?forProvider == oldObject.spec.?forProvider && object.spec.?initProvider == oldObject.spec.?initProvider) || " +
		"object.metadata.?annotations[?%[2]q].orValue('') != oldObject.metadata.?annotations[?%[2]q].orValue('')"

	gateOpenForDelete = "has(oldObject.spec.managementPolicies) && oldObject.spec.managementPolicies.exists(a, a == 'Delete' || a == '*')"

	meantToOrphan = "(has(oldObject.metadata.annotations) && %[1]q in oldObject.metadata.annotations && " +
		"oldObject.metadata.annotations[%[1]q] in [%[4]s]) || " +
		"(has(oldObject.metadata.annotations) && %[2]q in oldObject.metadata.annotations && oldObject.metadata.annotations[%[2]q] == %[3]q)"
)

func markedExpression(variable string) string {
	return fmt.Sprintf(marked, variable, v1alpha1.AnnotationGate, v1alpha1.AnnotationDesiredPolicies,
		texts(management.NoPolicies, management.NoPoliciesAudit), v1alpha1.AnnotationPrefix, texts(v1alpha1.KnownAnnotations()...))
}

// openedExpression is true of a write of Crossplane with which the webhook has opened a gate.
func (h Options) openedExpression() string {
	return fmt.Sprintf(opens, h.Crossplane, v1alpha1.AnnotationGate, v1alpha1.AnnotationTrace, texts(managed.UngatedRecords()...))
}

// orphanExpression is true of a managed resource that is meant to go without its external object.
func orphanExpression() string {
	return fmt.Sprintf(meantToOrphan,
		v1alpha1.AnnotationDesiredPolicies, v1alpha1.AnnotationRelease, v1alpha1.ReleaseOrphan, texts(management.KeepsExternal()...))
}

func ungatedExpression() string {
	return fmt.Sprintf(ungatedBefore, v1alpha1.AnnotationGate, texts(managed.UngatedRecords()...))
}

// texts are the elements of a list of texts, in CEL.
func texts(list ...string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}

	return strings.Join(out, ", ")
}

// writerGuard lets only the manager change spec.managementPolicies and the
// gate's record, or the webhook with a write of Crossplane's that opens the gate;
// and nobody but a provider what it acts upon, unless Kausality has noted that:
// otherwise it could not be known later what was asked for. Its reason is Invalid,
// on which Crossplane continues with the other resources and tries again.
func (h Options) writerGuard(
	rules []admissionregistrationv1.NamedRuleWithOperations, without []string,
) *admissionregistrationv1.ValidatingAdmissionPolicy {
	const (
		howTo = "only Kausality moves the gate (spec.managementPolicies): to have a change applied, " +
			"ask for it where an AllowancePolicy allows it; to see who asked for what, run: kubectl kausality trace"
		howToCreate = "a governed managed resource must be created with spec.managementPolicies, and not with *"
		howToEdit   = "Kausality has to look at a change of spec.forProvider or spec.initProvider before it is stored, " +
			"and could not: try again once the Deployment kausality-manager is ready"
	)

	invalid := ptr.To(metav1.StatusReasonInvalid)
	opened := " || " + h.openedExpression()

	return guard(v1alpha1.NameWriterGuard, rules,
		[]admissionregistrationv1.MatchCondition{
			{Name: "not-manager", Expression: fmt.Sprintf("request.userInfo.username != %q", h.Manager)},
			{
				Name: "governed",
				Expression: fmt.Sprintf("(%s) || (oldObject != null && %s)",
					markedExpression("object"), markedExpression("oldObject")),
			},
		},
		append([]admissionregistrationv1.Validation{
			{Expression: unchangedPolicies + opened, Reason: invalid, Message: howTo},
			{Expression: startsBounded, Reason: invalid, Message: howToCreate},
			{
				Expression: fmt.Sprintf(unchangedRecord, v1alpha1.AnnotationGate) + opened, Reason: invalid,
				Message: "only Kausality writes the annotation " + v1alpha1.AnnotationGate,
			},
			{
				Expression: fmt.Sprintf(traced, h.byProvider(), v1alpha1.AnnotationTrace, ungatedExpression()),
				Reason:     invalid, Message: howToEdit,
			},
		}, append(h.unchangedUnlessAllowed(), withField(without)...)...))
}

// withField refuses to write a governed managed resource in a version of its kind that has no spec.managementPolicies: what is stored
// would have its default, and an open gate. Without are such versions, as RESOURCE.VERSION.GROUP with the version to use, in CEL.
func withField(without []string) []admissionregistrationv1.Validation {
	if len(without) == 0 {
		return nil
	}

	slices.Sort(without)

	const (
		asked   = "request.requestResource.resource + '.' + request.requestResource.version + '.' + request.requestResource.group"
		message = "its gate is spec.managementPolicies, which this version of its kind does not have: write it in another one"
	)

	versions := "{" + strings.Join(without, ", ") + "}"

	return []admissionregistrationv1.Validation{{
		Expression: "!((" + asked + ") in " + versions + ")", Reason: ptr.To(metav1.StatusReasonInvalid), Message: message,
		MessageExpression: "'its gate is spec.managementPolicies, which ' + request.requestResource.version + ' does not have: write it in ' + " +
			versions + "[" + asked + "]",
	}}
}

// deleteGuard refuses to delete a managed resource whose provider would then
// silently orphan the external one.
func deleteGuard(rules []admissionregistrationv1.NamedRuleWithOperations) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return guard(v1alpha1.NameDeleteGuard, rules,
		[]admissionregistrationv1.MatchCondition{{Name: "governed", Expression: markedExpression("oldObject")}},
		[]admissionregistrationv1.Validation{{
			Expression: "(" + gateOpenForDelete + ") || " + orphans + " || " + orphanExpression(),
			Reason:     ptr.To(metav1.StatusReasonForbidden),
			Message: "gate is not open for Delete: the external object would be orphaned. If an AllowancePolicy allows the deletion, " +
				"the gate opens: try again. To keep the external object: kubectl kausality release",
		}})
}

func guard(
	name string,
	rules []admissionregistrationv1.NamedRuleWithOperations,
	conditions []admissionregistrationv1.MatchCondition,
	validations []admissionregistrationv1.Validation,
) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules:     rules,
				MatchPolicy:       ptr.To(admissionregistrationv1.Equivalent),
				NamespaceSelector: &metav1.LabelSelector{},
				ObjectSelector:    &metav1.LabelSelector{},
			},
			MatchConditions: conditions,
			Validations:     validations,
		},
	}
}
