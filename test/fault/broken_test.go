// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestABrokenEnforcementFailsAsItsFailurePolicySays which was stored while nobody checked it.
func TestABrokenEnforcementFailsAsItsFailurePolicySays(t *testing.T) {
	ctx := t.Context()

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	c, err := client.New(running.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	broken := func(failure v1alpha1.FailurePolicy) *v1alpha1.Enforcement {
		label := strings.ToLower(string(failure))

		return &v1alpha1.Enforcement{ObjectMeta: metav1.ObjectMeta{Name: "broken-" + label}, Spec: v1alpha1.EnforcementSpec{
			Match: v1alpha1.EnforcementMatch{
				ResourceRules:  []v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}}},
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"broken": label}},
			},
			MatchConditions: []v1alpha1.MatchCondition{
				{Name: "named", Expression: "object.metadata.name != 'other'"}, {Name: "broken", Expression: "object.metadata.name =="},
			},
			ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionDeny}, FailurePolicy: failure,
		}}
	}
	config := func(name, label string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"broken": label}}}
	}

	all := make([]client.Object, 0, 5)
	all = append(all, config("broken-named", "fail"), config("other", "fail"), config("broken-ignored", "ignore"))

	for _, u := range all {
		if err := c.Create(ctx, u); err != nil {
			t.Fatal(err)
		}
	}

	// 1. While the webhook is there, neither is stored.
	for _, f := range []v1alpha1.FailurePolicy{v1alpha1.FailurePolicyFail, v1alpha1.FailurePolicyIgnore} {
		if err := c.Create(ctx, broken(f), client.DryRunAll); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s is stored: %v", f, err)
		}
	}

	// 2. While it is away, both are.
	p := running.Process("kausality-manager")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}

	for _, f := range []v1alpha1.FailurePolicy{v1alpha1.FailurePolicyFail, v1alpha1.FailurePolicyIgnore} {
		e := broken(f)
		if err := c.Create(ctx, e); err != nil {
			t.Fatal(err)
		}

		all = append(all, e)
	}

	t.Cleanup(func() {
		for _, u := range slices.Backward(all) {
			if err := c.Delete(context.WithoutCancel(ctx), u); err != nil {
				t.Error(err)
			}
		}
	})

	if err := p.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	// 3. With Fail what its rules, selectors and the conditions that compile are about is refused,
	// and nothing else.
	change := func(name string) error {
		return c.Patch(ctx, config(name, ""), world.Merge(`{"data": {"a": "b"}}`), client.DryRunAll)
	}

	if err := scenario.Eventually(ctx, "a refusal", func(context.Context) error {
		err := change("broken-named")
		if !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), `Enforcement "broken-fail" with failurePolicy Fail does not compile at spec.matchConditions[1].expression`) {
			return fmt.Errorf("%w: %w", err, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}

	for _, name := range []string{"other", "broken-ignored"} {
		if err := change(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
