// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// setting is a patch that sets the cost of what a policy is about.
func setting(key, value string) client.Patch {
	return world.Merge(`{"spec": {"settings": {"` + key + `.lab.example.org/cost": "` + value + `"}}}`)
}

// eventually waits until a user's change of the plan is allowed, or is not and is warned of.
func (l lab) eventually(t *testing.T, as *world.Warned, key, value string, may bool, says string) {
	t.Helper()

	if err := scenario.Eventually(t.Context(), fmt.Sprintf("%s=%s being allowed: %t", key, value, may), func(ctx context.Context) error {
		as.Take()

		plan := l.plan.DeepCopy()
		if err := as.Patch(ctx, plan, setting(key, value), client.DryRunAll); err != nil {
			return err
		}

		text := as.Take()
		if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); mentions(got, "mutation: ") != may || !mentions(text, says) {
			return fmt.Errorf("allowances %q, and said %q: %w", got, text, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAPolicySaysHolds has one policy for each word that others have not.
func TestWhatAPolicySaysHolds(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-language", "none")
	if err := l.applyFile(t.Context(), "language.yaml"); err != nil {
		t.Fatal(err)
	}

	as := warnedAs(t, hans, "platform-team", "system:masters", "system:authenticated")
	other := warnedAs(t, "lab-painter", "system:authenticated")
	patches := rbacv1.PolicyRule{APIGroups: []string{labGroup}, Resources: []string{"plans"}, Verbs: []string{"patch"}}
	l.grant(t, "lab-painter-patches", userNamed("lab-painter"), patches, false)

	// A condition in Shadow mode decides nothing, and what it would decide is reported.
	l.eventually(t, as, "try", "high", true, "")

	n := metrics(t, running.ManagerMetricsURL()).Sum("kausality_webhook_shadow_total", "kind=Plan", "verdict=Unallowed", "policy=lab-try", "condition=cheap")
	if n == 0 {
		t.Error("what a condition in Shadow mode would refuse is not counted")
	}

	// What is over is.
	l.eventually(t, as, "over", "high", false, `condition "until": only before 2026`)

	// The authorizer is asked about whatever a condition names.
	l.eventually(t, other, "group", "high", false, "authorizer.group('lab.example.org')")
	l.grant(t, "lab-painter", userNamed("lab-painter"), rbacv1.PolicyRule{
		APIGroups: []string{labGroup}, Resources: []string{"tasks"}, Verbs: []string{"paint"},
	}, false)
	l.eventually(t, other, "group", "high", true, "")
}

// TestAChainThatStartsBelowReadsTheParent which is read as it is, and not as it is remembered.
func TestAChainThatStartsBelowReadsTheParent(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-parent", "deny")
	if err := l.applyFile(t.Context(), "language.yaml"); err != nil {
		t.Fatal(err)
	}

	task := l.made(t, "task")
	as := warnedAs(t, hansName, "platform-team", "system:masters", "system:authenticated")

	for _, step := range []struct{ plan, says string }{
		{plan: `{"spec": {"team": "b"}}`, says: `condition "small": the plan is small`},
		{plan: `{"spec": {"team": "a"}}`},
		{plan: `{"spec": {"size": "large"}}`, says: `condition "small": the plan is large`},
	} {
		// As nobody is asked about.
		manager := impersonate(t, "system:serviceaccount:kausality-system:kausality-manager", "system:masters")
		if err := manager.Patch(t.Context(), l.plan.DeepCopy(), world.Merge(step.plan)); err != nil {
			t.Fatal(err)
		}

		if err := scenario.Eventually(t.Context(), "a verdict with "+step.plan, func(ctx context.Context) error {
			err := as.Patch(ctx, task.DeepCopy(), setting("parent", "high"), client.DryRunAll)
			if (err == nil) != (step.says == "") || err != nil && !mentions(err.Error(), step.says) {
				return errors.Join(err, world.ErrOther)
			}

			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestAClusterScopedKindHoldsParameters which the policy selects.
func TestAClusterScopedKindHoldsParameters(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-tiers", "none")
	ctx := t.Context()

	// It is in force once its parameters can be read.
	role := right.RoleOfParameters(schema.GroupResource{Group: "tiers.lab.example.org", Resource: "tiers"})
	if err := errors.Join(client.IgnoreAlreadyExists(l.Create(ctx, &role)), l.applyFile(ctx, "tiers.yaml")); err != nil {
		t.Fatal(err)
	}

	as := warnedAs(t, hans, "platform-team", "system:masters", "system:authenticated")
	l.eventually(t, as, "tiers", "low", false, `there is no Tier of labels "for in (all,plans)"`)

	tier := func(name, label string, costs ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"costs": costs}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "tiers.lab.example.org", Version: "v1", Kind: "Tier"})
		u.SetName(name)
		u.SetLabels(map[string]string{"for": label})

		return u
	}

	for _, u := range []*unstructured.Unstructured{tier("one", "plans", "low", "high"), tier("other", "tasks", "none")} {
		if err := scenario.Eventually(ctx, "a tier", func(ctx context.Context) error { return l.Create(ctx, u) }); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(ctx), u) })
	}

	l.eventually(t, as, "tiers", "low", true, "")

	two := tier("two", "all", "high")
	if err := l.Create(ctx, two); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(ctx), two) })

	l.eventually(t, as, "tiers", "low", false, `(with Tier "two")`)
	l.eventually(t, as, "tiers", "high", true, "")
}

// TestWhatWasBegunInTimeIsCarriedOn has a policy end in the middle of a chain that it serves at
// each step.
func TestWhatWasBegunInTimeIsCarriedOn(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-until", "deny")
	typed := typedAs(t, "")
	task := l.made(t, "task")
	as := warnedAs(t, hans, "platform-team", "system:masters", "system:authenticated")

	policy := &v1alpha1.AllowancePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "lab-until"},
		Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{
				APIGroup: labGroup, Kinds: []string{"Plan", "Task"}, Fields: []string{"spec.settings[until.lab.example.org/*]"},
				CEL: []string{"now < timestamp('2126-01-01T00:00:00Z')"},
			},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
			Allow: []v1alpha1.Permission{
				{APIGroup: labGroup, Kind: "Task", Mutations: []string{"spec.settings[until.lab.example.org/*]"}},
				{APIGroup: labGroup, Kind: "Fleet", Mutations: []string{"spec"}},
			},
		},
	}
	if err := typed.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = typed.Delete(context.WithoutCancel(t.Context()), policy) })

	// 1. It is begun, and the time is over.
	l.eventually(t, as, "until", "high", true, "")

	if err := as.Patch(t.Context(), l.plan.DeepCopy(), setting("until", "high")); err != nil {
		t.Fatal(err)
	}

	over := fmt.Sprintf(`{"spec": {"match": {"cel": ["now < timestamp('%s')"]}}}`, time.Now().UTC().Format(time.RFC3339))
	if err := typed.Patch(t.Context(), policy, world.Merge(over)); err != nil {
		t.Fatal(err)
	}

	l.eventually(t, as, "until", "low", false, "now < timestamp")

	// 2. It is carried on all the same, and what follows from that is allowed, too.
	if err := controller(t, worker).Patch(t.Context(), task, setting("until", "high")); err != nil {
		t.Fatal(err)
	}

	if got := resource.Annotation(task, v1alpha1.AnnotationAllowances); !mentions(got, "kind: Fleet", "policy: lab-until") {
		t.Errorf("the task has allowances %q", got)
	}

	// 3. The policy says so.
	if err := scenario.Eventually(t.Context(), "a warning", func(ctx context.Context) error {
		got := &v1alpha1.AllowancePolicy{}
		if err := typed.Get(ctx, client.ObjectKeyFromObject(policy), got); err != nil {
			return err
		}

		if got.Status.ObservedGeneration != got.GetGeneration() || len(got.Status.TypeChecking) == 0 ||
			!mentions(got.Status.TypeChecking[0].Warning, "it reads now", "counts as met") {
			return fmt.Errorf("%+v: %w", got.Status, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestBindingsGiveNoMoreThanThePolicy by each of their fields.
func TestBindingsGiveNoMoreThanThePolicy(t *testing.T) {
	t.Parallel()

	b := newBound(t, "lab-more")
	if err := b.applyFile(t.Context(), "language.yaml"); err != nil {
		t.Fatal(err)
	}

	eve := impersonate(t, "eve@example.com", "system:authenticated")
	b.grant(t, "lab-more-eve", userNamed("eve@example.com"), rbacv1.PolicyRule{
		APIGroups: []string{labGroup}, Resources: []string{"plans"}, Verbs: []string{"patch"},
	}, true)

	false1 := b.binding("false", "lab-who-is-bound", "eve@example.com")
	false1.Spec.MatchConditions = []v1alpha1.BindingCondition{{MatchCondition: v1alpha1.MatchCondition{Name: "never", Expression: "false"}}}

	// 1. Of a policy that wants none, and with a condition that is false, nobody gets anything.
	for _, one := range []*v1alpha1.AllowanceBinding{b.binding("unbindable", "lab-own-alone", "eve@example.com"), false1} {
		if err := b.typed.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}

	b.eventuallyReady(t, "unbindable", metav1.ConditionFalse, v1alpha1.ReasonNotBindable)
	b.eventuallyReady(t, "false", metav1.ConditionTrue, v1alpha1.ReasonInForce)
	b.eventuallyMay(t, false, "alone", eve, b.plan)
	b.eventuallyMay(t, false, "bound", eve, b.plan)

	// 2. Of several one is enough, and one that names nobody takes nothing away.
	for name, users := range map[string][]string{"hers": {"eve@example.com"}, "another": {"somebody@example.com"}} {
		if err := b.typed.Create(t.Context(), b.binding(name, "lab-who-is-bound", users...)); err != nil {
			t.Fatal(err)
		}
	}

	b.eventuallyMay(t, true, "bound", eve, b.plan)

	// 3. It is about the fields of the policy alone.
	b.eventuallyMay(t, false, "required", eve, b.plan)

	// 4. Whoever it names, Crossplane initiates nothing by it.
	all := b.binding("all", "lab-who-is-bound")
	all.Spec.Subjects = []v1alpha1.BindingSubject{
		{Kind: "ServiceAccount", Namespace: "crossplane-system", Name: "crossplane"}, {Kind: "Group", Name: "system:serviceaccounts"},
	}

	if err := b.typed.Create(t.Context(), all); err != nil {
		t.Fatal(err)
	}

	b.eventuallyReady(t, "all", metav1.ConditionTrue, v1alpha1.ReasonInForce)
	b.eventuallyMay(t, false, "bound", controller(t, "system:serviceaccount:crossplane-system:crossplane"), b.plan)
	b.eventuallyMay(t, true, "bound", controller(t, "system:serviceaccount:team:ci"), b.plan)

	// 5. Its parameters change only by who may bind.
	err := b.lead.Patch(t.Context(), b.binding("hers", ""), world.Merge(`{"spec": {"paramRef": {"name": "mine"}}}`), client.DryRunAll)
	if !apierrors.IsForbidden(err) || !mentions(err.Error(), "--verb=bind") {
		t.Errorf("paramRef without bind: %v", err)
	}
}

// TestWhatIsHeldNamesTheOwnerOfThePolicy whom to ask.
func TestWhatIsHeldNamesTheOwnerOfThePolicy(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-owned", "hold")
	task := l.made(t, "task")
	as := controller(t, worker)

	if err := as.Patch(t.Context(), task, world.Merge(`{"spec": {"settings": {"team.lab.example.org/name": "a"}}}`)); err != nil {
		t.Fatal(err)
	}

	const owner = `ask the lab (#lab) about policy "lab-settings"`

	if text := as.Take(); !mentions(text, owner) {
		t.Errorf("it is warned of %q", text)
	}

	if got := resource.Annotation(task, v1alpha1.AnnotationHeld); !mentions(got, owner) {
		t.Errorf("what is held says %q", got)
	}
}
