// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestWhoAsksHowAndWhenDecidesWhereAChainStarts has a policy of two kinds that reads all
// of a request, and the time.
func TestWhoAsksHowAndWhenDecidesWhereAChainStarts(t *testing.T) {
	t.Parallel()

	const key = "when.lab.example.org/cost"

	l := newLab(t, "lab-when", "deny")
	task := l.made(t, "task")
	as := controller(t, worker)
	patch := world.Merge(`{"spec": {"settings": {"` + key + `": "a"}}}`)

	hansen, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	// 1. Asked for in another way, it allows nothing: not by another program, nor as a dry run.
	for what, opts := range map[string][]client.PatchOption{
		"another program": {client.FieldOwner("argocd"), client.DryRunAll}, "a dry run": {client.FieldOwner("kubectl-lab"), client.DryRunAll},
	} {
		plan := l.plan.DeepCopy()
		if err := hansen.Patch(t.Context(), plan, patch, opts...); err != nil {
			t.Fatal(err)
		}

		if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); got != "" {
			t.Errorf("%s allows %s", what, got)
		}
	}

	err = as.Patch(t.Context(), task.DeepCopy(), patch)
	if !apierrors.IsForbidden(err) || !mentions(err.Error(), `policy "lab-when" gives one when Group platform-team changes spec.settings[when.lab.example.org/*]`) {
		t.Errorf("not asked for: %v", err)
	}

	// 2. Asked for as it is to be, it does, and who carries it on need not be who asked.
	if err := hansen.Patch(t.Context(), l.plan.DeepCopy(), patch, client.FieldOwner("kubectl-lab")); err != nil {
		t.Fatal(err)
	}

	if err := as.Patch(t.Context(), task.DeepCopy(), patch); err != nil {
		t.Error(err)
	}

	audited(t, l, task, "Allowed", map[string]string{"rule": "Allowance", "policy": "lab-when", "initiator": hansName})
}

// TestInShadowModeNothingIsGrantedAndItIsReportedWhatWouldBe has a policy that is not to
// count yet.
func TestInShadowModeNothingIsGrantedAndItIsReportedWhatWouldBe(t *testing.T) {
	t.Parallel()

	const field = "spec.settings[shadow.lab.example.org/cost]"

	l := newLab(t, "lab-shadow", "none")

	hansen, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	plan := l.plan.DeepCopy()
	if err := hansen.Patch(t.Context(), plan, world.Merge(`{"spec": {"settings": {"shadow.lab.example.org/cost": "a"}}}`)); err != nil {
		t.Fatal(err)
	}

	if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); got != "" {
		t.Errorf("it allows %s", got)
	}

	audited(t, l, plan, "Warned", map[string]string{"shadow": field + ` would be allowed by AllowancePolicy "lab-shadow"`})

	counted := metrics(t, running.ManagerMetricsURL()).Sum("kausality_webhook_shadow_total", "kind=Plan", "verdict=Allowed", "policy=lab-shadow")
	if counted == 0 {
		t.Error("it is not counted")
	}

	p := &unstructured.Unstructured{}
	p.SetAPIVersion("kausality.io/v1alpha1")
	p.SetKind("AllowancePolicy")

	if err := scenario.Eventually(t.Context(), "a status", func(ctx context.Context) error {
		if err := l.Get(ctx, client.ObjectKey{Name: "lab-shadow"}, p); err != nil {
			return err
		}

		if c, _ := resource.ConditionOf(p, v1alpha1.ConditionReady); !c.True() || c.Reason != v1alpha1.ReasonShadow {
			return fmt.Errorf("%+v: %w", c, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestAnEnforcementIsAboutWhatItsRulesSay deletes one task that a rule names, and one that
// none does.
func TestAnEnforcementIsAboutWhatItsRulesSay(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-named", "named")
	as := controller(t, worker)
	kept, other := l.made(t, "kept"), l.made(t, "other")

	// 1. Another operation, and another name, are no matter of it.
	if err := as.Patch(t.Context(), kept.DeepCopy(), world.Merge(`{"spec": {"size": "huge"}}`)); err != nil {
		t.Errorf("an update: %v", err)
	}

	if err := as.Delete(t.Context(), other); err != nil {
		t.Errorf("another name: %v", err)
	}

	// 2. What a rule says in full is refused. The rule about a version that is not served is about nothing.
	err := as.Delete(t.Context(), kept)
	if !apierrors.IsForbidden(err) || !mentions(err.Error(), `Task "kept"`, `Plan "plan" has no allowance for it`) {
		t.Errorf("deleted: %v", err)
	}

	// 3. The API server asks about nothing else.
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := l.Get(t.Context(), client.ObjectKey{Name: v1alpha1.NameWebhooks}, hooks); err != nil {
		t.Fatal(err)
	}

	i := slices.IndexFunc(hooks.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name == "lab-named.enforcement.kausality.io"
	})
	if i < 0 {
		t.Fatal("there is no webhook of the Enforcement")
	}

	if got := fmt.Sprint(hooks.Webhooks[i].Rules[0].Operations); len(hooks.Webhooks[i].Rules) != 1 || got != "[DELETE]" {
		t.Errorf("the API server asks about %v", hooks.Webhooks[i].Rules)
	}
}
