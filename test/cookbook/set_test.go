// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
)

// setOf is what is in force while a scenario is played: the recipe as it is on the page, what the scenario
// has besides, its parameters in place of the recipe's, and the roles of who asks.
func setOf(one *policytest.Scenario, r cookbook.Recipe) ([]*unstructured.Unstructured, error) {
	recipe, err := r.Objects()
	if err != nil {
		return nil, err
	}

	var out []*unstructured.Unstructured

	for _, u := range recipe {
		if !cookbook.IsParameter(u) {
			out = append(out, u)
		}
	}

	// What has a definition comes after it.
	crds := slices.DeleteFunc(slices.Clone(out), func(u *unstructured.Unstructured) bool { return u.GetKind() != kindCRD })
	rest := slices.DeleteFunc(out, func(u *unstructured.Unstructured) bool { return u.GetKind() == kindCRD })
	out = append(append(crds, one.Params...), rest...)

	others, err := othersOf(one, recipe)
	if err != nil {
		return nil, err
	}

	out = append(out, others...)

	return append(out, rolesOf(one, recipe)...), nil
}

const kindCRD = "CustomResourceDefinition"

// othersOf are the objects of ours that a scenario has and its recipe has not.
func othersOf(one *policytest.Scenario, recipe []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	typed := map[string][]runtime.Object{}
	for i := range one.Policies {
		typed[v1alpha1.KindPolicy] = append(typed[v1alpha1.KindPolicy], &one.Policies[i])
	}

	for i := range one.Bindings {
		typed[v1alpha1.KindBinding] = append(typed[v1alpha1.KindBinding], &one.Bindings[i])
	}

	for i := range one.Upgrades {
		typed[v1alpha1.KindUpgrade] = append(typed[v1alpha1.KindUpgrade], &one.Upgrades[i])
	}

	for i := range one.Enforcements {
		typed[v1alpha1.KindEnforcement] = append(typed[v1alpha1.KindEnforcement], &one.Enforcements[i])
	}

	var out []*unstructured.Unstructured

	for _, kind := range []string{v1alpha1.KindPolicy, v1alpha1.KindBinding, v1alpha1.KindUpgrade, v1alpha1.KindEnforcement} {
		for _, obj := range typed[kind] {
			u, err := untyped(kind, obj)
			if err != nil {
				return nil, err
			}

			if !slices.ContainsFunc(recipe, func(of *unstructured.Unstructured) bool { return key(of) == key(u) }) {
				out = append(out, u)
			}
		}
	}

	return out, nil
}

// kindsOf are the CRDs of the kinds that a scenario is about, but for those of Kubernetes itself.
func kindsOf(one *policytest.Scenario) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured

	for _, u := range []*unstructured.Unstructured{one.Old, one.New, one.Parent} {
		if u == nil || !strings.Contains(u.GroupVersionKind().Group, ".") {
			continue
		}

		versions := []string{u.GroupVersionKind().Version}
		if len(one.Request.Versions) > 0 && u != one.Parent {
			versions = one.Request.Versions
		}

		crd := definition(u, versions)
		if !slices.ContainsFunc(out, func(of *unstructured.Unstructured) bool { return key(of) == key(crd) }) {
			out = append(out, crd)
		}
	}

	return out
}

// definition is the CRD of an object, namespaced as that is, which is stored in its version.
func definition(u *unstructured.Unstructured, served []string) *unstructured.Unstructured {
	scope, category := "Namespaced", "composite"
	if u.GetNamespace() == "" {
		scope = "Cluster"
	}

	switch {
	case strings.HasSuffix(u.GetKind(), "Claim"):
		category = "claim"
	case strings.HasPrefix(u.GetKind(), "RDS"):
		category = "managed"
	}

	free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	properties := map[string]any{"spec": free, "status": free}
	versions := make([]any, len(served))

	for i, version := range served {
		versions[i] = map[string]any{
			"name": version, "served": true, "storage": version == u.GroupVersionKind().Version,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}},
		}
	}

	plural := strings.ToLower(u.GetKind()) + "s"
	group := u.GroupVersionKind().Group

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": kindCRD,
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": scope, "versions": versions,
			"names": map[string]any{"kind": u.GetKind(), "plural": plural, "categories": []any{category}},
		},
	}}
}

// rolesOf are those that grant what the scenario's authorizer does: by a role of the recipe, where one
// has it.
func rolesOf(one *policytest.Scenario, recipe []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured

	for i, grant := range one.Request.Granted {
		what, namespace, _ := strings.Cut(grant, " in ")
		verb, res, _ := strings.Cut(what, " ")
		name := fmt.Sprintf("granted-%d", i)
		role := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}

		if res == "" {
			res = one.Request.Resource + "/kausality"
		}

		if of := granting(recipe, verb); of != "" {
			role["kind"], role["name"], name = "ClusterRole", of, of // A RoleBinding's role is for good.
		} else {
			out = append(out, rbac("Role", namespace, name, map[string]any{
				"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{res}, "verbs": []any{verb}}},
			}))
		}

		out = append(out, rbac("RoleBinding", namespace, name, map[string]any{
			"roleRef":  role,
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": one.Request.User.Name}},
		}))
	}

	return out
}

// granting is the ClusterRole of a recipe that has a verb.
func granting(recipe []*unstructured.Unstructured, verb string) string {
	for _, u := range recipe {
		rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
		for _, rule := range rules {
			if m, ok := rule.(map[string]any); ok && slices.Contains(resource.Strings(m, "verbs"), verb) {
				return u.GetName()
			}
		}
	}

	return ""
}

func rbac(kind, namespace, name string, object map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion("rbac.authorization.k8s.io/v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)

	return u
}
