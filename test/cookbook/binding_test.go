// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// bound is the recipe that says which roles it takes to bind somebody.
const bound = "whom-each-team-lets-in-its-own-namespace"

// bindings has who leads a team bind somebody with the roles of the recipe, and not without them, nor
// elsewhere: no scenario is about whoever writes bindings.
func (s *stage) bindings(t *testing.T, r cookbook.Recipe) {
	t.Helper()

	objects, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}

	var binding *unstructured.Unstructured

	roles := []*unstructured.Unstructured{}
	inForce := []*unstructured.Unstructured{}

	for _, u := range objects {
		switch u.GetKind() {
		case v1alpha1.KindBinding:
			binding = u
		case "ClusterRole":
			roles = append(roles, u)
			inForce = append(inForce, u)
		default:
			inForce = append(inForce, u)
		}
	}

	leo := world.Impersonate(t, running, "leo@example.com")
	to := []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "leo@example.com"}}
	write := grant("RoleBinding", binding.GetNamespace(), roles[0].GetName(), to)
	bind := grant("ClusterRoleBinding", "", roles[1].GetName(), to)

	for _, step := range []struct {
		reason, namespace string
		roles             []*unstructured.Unstructured
		refused           bool
	}{
		{"Without either role nobody binds anybody.", "shop", nil, true},
		{"To write bindings is not enough.", "shop", []*unstructured.Unstructured{write}, true},
		{"To bind is not enough.", "shop", []*unstructured.Unstructured{bind}, true},
		{"With both roles who leads the team does.", "shop", []*unstructured.Unstructured{write, bind}, false},
		{"And not in the namespace of another team.", "team-b", []*unstructured.Unstructured{write, bind}, true},
	} {
		if err := scenario.Eventually(t.Context(), step.reason, func(ctx context.Context) error {
			if err := errors.Join(s.clear(ctx), s.force(ctx, append(inForce, step.roles...)), s.namespace(ctx, step.namespace, nil)); err != nil {
				return err
			}

			u := binding.DeepCopy()
			u.SetNamespace(step.namespace)
			s.props = append(s.props, u)

			err := leo.Create(ctx, u)
			if apierrors.IsForbidden(err) != step.refused || !step.refused && err != nil {
				return fmt.Errorf("it is answered %w", errors.Join(err, world.ErrOther))
			}

			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// grant grants a ClusterRole.
func grant(kind, namespace, role string, subjects []any) *unstructured.Unstructured {
	return rbac(kind, namespace, role, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects": subjects,
	})
}
