// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	governed "github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// roles are those of the chart that have a label, by name.
func roles(t *testing.T, values string) map[string]*rbacv1.ClusterRole {
	t.Helper()

	text, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}

	out := map[string]*rbacv1.ClusterRole{}

	for _, u := range world.Parse(t, text) {
		if u.GetKind() != "ClusterRole" {
			continue
		}

		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, role, true); err != nil {
			t.Fatal(err)
		}

		out[u.GetName()] = role
	}

	return out
}

// TestAReleaseWithoutValuesMayReadNothingElse than what is named.
func TestAReleaseWithoutValuesMayReadNothingElse(t *testing.T) {
	t.Parallel()

	found := roles(t, "")
	aggregated := found["kausality-manager-governed"]

	if len(aggregated.Rules) > 0 || aggregated.AggregationRule == nil {
		t.Errorf("the aggregated role has rules of its own: %+v", aggregated)
	}

	for name, role := range found {
		if role.Labels[v1alpha1.LabelAggregate] != "" {
			t.Errorf("%s is aggregated", name)
		}

		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "secrets") {
				t.Errorf("%s: %+v", name, rule)
			}
		}
	}
}

// TestTheChartsRolesGiveWhatTheKindsTake as the engine has it, and are aggregated.
func TestTheChartsRolesGiveWhatTheKindsTake(t *testing.T) {
	t.Parallel()

	found := roles(t, "rbac: {governed: ['*.rds.example.org', databases.example.org, deployments.apps, configmaps]}")
	selector := found["kausality-manager-governed"].AggregationRule.ClusterRoleSelectors[0].MatchLabels

	for name, kind := range map[string]governed.Kind{
		"kausality-manager:*.rds.example.org":     {Group: "rds.example.org", Resource: "instances", Crossplane: true},
		"kausality-manager:databases.example.org": {Group: "example.org", Resource: "databases", Crossplane: true, Conditions: true},
		"kausality-manager:deployments.apps":      {Group: "apps", Resource: "deployments"},
		"kausality-manager:configmaps":            {Resource: "configmaps"},
	} {
		role := found[name]

		for key, value := range selector {
			if role.Labels[key] != value {
				t.Errorf("%s has labels %v, and is not aggregated by %v", name, role.Labels, selector)
			}
		}

		lacks := governed.Missing([]governed.Need{governed.Governed(kind)}, func(r governed.Right) bool {
			return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Verbs, r.Verb) &&
					(slices.Contains(rule.Resources, r.Resource) || slices.Contains(rule.Resources, "*"))
			})
		})
		if len(lacks) > 0 {
			t.Errorf("%s: %s", name, governed.Message(lacks, message.Most))
		}
	}
}

// TestTheWebhooksSecretIsTheOnlyOneThatIsRead whatever it is called.
func TestTheWebhooksSecretIsTheOnlyOneThatIsRead(t *testing.T) {
	t.Parallel()

	text, err := render(t, "webhook: {certificate: {secretName: mine}}")
	if err != nil {
		t.Fatal(err)
	}

	role := &rbacv1.Role{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(world.Parse(t, text), "Role", "kausality-manager").Object, role); err != nil {
		t.Fatal(err)
	}

	var named []string

	for _, rule := range role.Rules {
		if !slices.Contains(rule.Resources, "secrets") {
			continue
		}

		if len(rule.ResourceNames) == 0 && !slices.Equal(rule.Verbs, []string{"create"}) {
			t.Errorf("any Secret: %v", rule.Verbs)
		}

		named = append(named, rule.ResourceNames...)
	}

	if diff := cmp.Diff([]string{"mine"}, named); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
