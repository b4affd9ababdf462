// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// bound is a lab in whose namespace somebody binds policies.
type bound struct {
	lab

	// typed knows our kinds. Lead may make bindings in the namespace.
	typed, lead client.Client
}

const leadName = "lab-lead@example.com"

func newBound(t *testing.T, namespace string) bound {
	t.Helper()

	b := bound{lab: newLab(t, namespace, "none")}
	b.typed, b.lead = typedAs(t, ""), typedAs(t, leadName)

	lead := userNamed(leadName)
	b.grant(t, namespace+"-edits", lead, rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.Group}, Resources: []string{"allowancebindings"}, Verbs: []string{"create", "get", "patch", "update", "delete"},
	}, false)

	return b
}

// typedAs is a client of a user that knows our kinds; of the administrator for none.
func typedAs(t *testing.T, user string) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	config := running.Config()
	config.QPS = -1

	if user != "" {
		config.Impersonate.UserName, config.Impersonate.Groups = user, []string{"system:authenticated"}
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// mayBind grants the lead the verb bind on a policy.
func (b bound) mayBind(t *testing.T, policy string) {
	t.Helper()

	b.grant(t, b.namespace+"-binds-"+policy, userNamed(leadName),
		rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.Group}, Resources: []string{"allowancepolicies"}, ResourceNames: []string{policy}, Verbs: []string{"bind"},
		}, true)
}

// binding of a policy for users by name.
func (b bound) binding(name, policy string, users ...string) *v1alpha1.AllowanceBinding {
	out := &v1alpha1.AllowanceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec:       v1alpha1.AllowanceBindingSpec{Policy: policy},
	}

	for _, u := range users {
		out.Spec.Subjects = append(out.Spec.Subjects, v1alpha1.BindingSubject{Kind: "User", Name: u})
	}

	return out
}

// eventuallyMay waits until a user may, or may not, initiate what is named by a key.
func (b bound) eventuallyMay(t *testing.T, may bool, key string, as client.Client, obj client.Object) {
	t.Helper()

	if err := scenario.Eventually(t.Context(), fmt.Sprintf("%s being allowed: %t", key, may), func(ctx context.Context) error {
		u, _ := obj.DeepCopyObject().(*unstructured.Unstructured)
		if err := as.Patch(ctx, u, world.Merge(`{"spec": {"settings": {"`+key+`.lab.example.org/cost": "a"}}}`), client.DryRunAll); err != nil {
			return err
		}

		if got := resource.Annotation(u, v1alpha1.AnnotationAllowances); (got != "") != may {
			return fmt.Errorf("allowances %q: %w", got, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// eventuallyReady waits until a binding has a reason.
func (b bound) eventuallyReady(t *testing.T, name string, want metav1.ConditionStatus, reason string) *v1alpha1.AllowanceBinding {
	t.Helper()

	got := &v1alpha1.AllowanceBinding{}
	if err := scenario.Eventually(t.Context(), "the status of binding "+name, func(ctx context.Context) error {
		if err := b.typed.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, got); err != nil {
			return err
		}

		c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != want || c.Reason != reason || c.ObservedGeneration != got.GetGeneration() {
			return fmt.Errorf("%+v: %w", c, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	return got
}

// TestABindingSaysWhoMayInitiateInItsNamespace has somebody who leads a team bind two policies
// in the team's namespace, for a member of it.
func TestABindingSaysWhoMayInitiateInItsNamespace(t *testing.T) {
	t.Parallel()

	b := newBound(t, "lab-bound")
	eve := impersonate(t, "eve@example.com", "system:authenticated")
	b.grant(t, "lab-bound-eve", userNamed("eve@example.com"), rbacv1.PolicyRule{
		APIGroups: []string{labGroup}, Resources: []string{"plans"}, Verbs: []string{"patch"},
	}, true)

	hansen, err := b.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	// 1. Without a binding the policy's own subjects may, unless it requires one.
	b.eventuallyMay(t, false, "bound", eve, b.plan)
	b.eventuallyMay(t, true, "bound", hansen, b.plan)
	b.eventuallyMay(t, false, "required", hansen, b.plan)

	// 2. Who may make a binding needs the verb bind on its policy.
	var refused error
	if err := scenario.Eventually(t.Context(), "a refusal", func(ctx context.Context) error {
		refused = b.lead.Create(ctx, b.binding("team", "lab-who-is-bound", "eve@example.com"), client.DryRunAll)
		if !apierrors.IsForbidden(refused) || !mentions(refused.Error(), "--verb=bind --resource=allowancepolicies.kausality.io --resource-name=lab-who-is-bound") {
			return fmt.Errorf("without bind: %w", errors.Join(refused, world.ErrOther))
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	b.mayBind(t, "lab-who-is-bound")

	team := b.binding("team", "lab-who-is-bound", "eve@example.com")
	if err := scenario.Eventually(t.Context(), "a binding", func(ctx context.Context) error { return b.lead.Create(ctx, team) }); err != nil {
		t.Fatal(err)
	}

	if err := b.typed.Create(t.Context(), b.binding("required", "lab-required", "eve@example.com")); err != nil {
		t.Fatal(err)
	}

	b.eventuallyReady(t, "team", metav1.ConditionTrue, v1alpha1.ReasonInForce)

	// 3. Its subjects may then, and so may those of the policy that requires one; elsewhere
	// nothing is different.
	b.eventuallyMay(t, true, "bound", eve, b.plan)
	b.eventuallyMay(t, true, "required", eve, b.plan)
	b.eventuallyMay(t, true, "required", hansen, b.plan)

	other := newLab(t, "lab-unbound", "none")
	b.eventuallyMay(t, false, "bound", eve, other.plan)
	b.eventuallyMay(t, false, "required", hansen, other.plan)

	// 4. What it gives changes only by who may bind, and never to another policy.
	for what, patch := range map[string]string{
		"subjects":   `{"spec": {"subjects": [{"kind": "Group", "name": "system:authenticated"}]}}`,
		"conditions": `{"spec": {"matchConditions": [{"name": "always", "expression": "true"}]}}`,
	} {
		err := b.lead.Patch(t.Context(), b.binding("required", ""), world.Merge(patch), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s without bind: %v", what, err)
		}

		if err := b.lead.Patch(t.Context(), b.binding("team", ""), world.Merge(patch), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	if err := b.lead.Patch(t.Context(), b.binding("required", ""), world.Merge(`{"metadata": {"labels": {"team": "a"}}}`)); err != nil {
		t.Errorf("a label: %v", err)
	}

	err = b.typed.Patch(t.Context(), b.binding("team", ""), world.Merge(`{"spec": {"policy": "lab-required"}}`))
	if !apierrors.IsInvalid(err) || !mentions(err.Error(), "policy cannot be changed") {
		t.Errorf("another policy: %v", err)
	}

	// 5. A condition that is false narrows it at once, and without it all is as before.
	if err := b.lead.Patch(t.Context(), b.binding("team", ""),
		world.Merge(`{"spec": {"matchConditions": [{"name": "never", "expression": "request.team == 'x'"}]}}`)); err != nil {
		t.Fatal(err)
	}

	b.eventuallyMay(t, false, "bound", eve, b.plan)

	if got := b.eventuallyReady(t, "team", metav1.ConditionTrue, v1alpha1.ReasonInForce); len(got.Status.TypeChecking) != 1 ||
		!mentions(got.Status.TypeChecking[0].Warning, "undefined field 'team'") {
		t.Errorf("type checking finds %v", got.Status.TypeChecking)
	}

	for _, name := range []string{"team", "required"} {
		if err := b.lead.Delete(t.Context(), b.binding(name, "")); err != nil {
			t.Fatal(err)
		}
	}

	b.eventuallyMay(t, false, "bound", eve, b.plan)
	b.eventuallyMay(t, true, "bound", hansen, b.plan)
	b.eventuallyMay(t, false, "required", hansen, b.plan)
}

// TestTheStatusOfABindingSaysWhyItGrantsNothing has bindings of policies that are not there,
// or want none.
func TestTheStatusOfABindingSaysWhyItGrantsNothing(t *testing.T) {
	world.Long(t)
	t.Parallel()

	b := newBound(t, "lab-bindings")

	crossplane := b.binding("crossplane", "lab-who-is-bound")
	crossplane.Spec.Subjects = []v1alpha1.BindingSubject{{Kind: "ServiceAccount", Namespace: "crossplane-system", Name: "crossplane"}}

	for _, one := range []*v1alpha1.AllowanceBinding{
		b.binding("unbindable", "lab-plans", "eve@example.com"), b.binding("unknown", "lab-bindings", "eve@example.com"), crossplane,
	} {
		if err := b.typed.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}

	b.eventuallyReady(t, "unbindable", metav1.ConditionFalse, v1alpha1.ReasonNotBindable)
	b.eventuallyReady(t, "unknown", metav1.ConditionFalse, v1alpha1.ReasonPolicyUnknown)

	// On a stack that has just started it may also say that it was made before the guard.
	got := b.eventuallyReady(t, "crossplane", metav1.ConditionTrue, v1alpha1.ReasonInForce)
	if !slices.ContainsFunc(got.Status.TypeChecking, func(w v1alpha1.TypeCheckingWarning) bool { return w.Field == "spec.subjects[0]" }) {
		t.Errorf("it is said of Crossplane: %v", got.Status.TypeChecking)
	}

	// It follows its policy, and the CRD stays while there is a binding.
	policy := &v1alpha1.AllowancePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "lab-bindings"},
		Spec: v1alpha1.AllowancePolicySpec{
			BindingMode: v1alpha1.BindingModeOptional,
			Match:       v1alpha1.Match{APIGroup: labGroup, Kind: "Plan", Fields: []string{"spec.settings[bindings.lab.example.org/x]"}},
			Allow:       []v1alpha1.Permission{},
		},
	}
	if err := b.typed.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = b.typed.Delete(context.WithoutCancel(t.Context()), policy) })

	b.eventuallyReady(t, "unknown", metav1.ConditionTrue, v1alpha1.ReasonInForce)

	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("allowancebindings.kausality.io")

	if err := scenario.Eventually(t.Context(), "a guard of the CRD", func(ctx context.Context) error {
		if err := b.Delete(ctx, crd, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it goes while there are bindings: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}
