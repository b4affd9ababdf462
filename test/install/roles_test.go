// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

const stores = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xstores.roles.example.org}
spec:
  group: roles.example.org
  names: {kind: XStore, plural: xstores}
  claimNames: {kind: Store, plural: stores}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}
`

// TestRolesOfCrossplaneGrantNoPermission binds each role that Crossplane's RBAC manager makes
// for a definition, the one for Crossplane itself among them: who has it may write, and
// initiates nothing by a Permission.
func TestRolesOfCrossplaneGrantNoPermission(t *testing.T) {
	world.Long(t)

	c := connect(t, running.Config(), nil)
	c.apply(t, []byte(stores))

	var roles []string

	world.Eventually(t, "roles of the definition", func(ctx context.Context) error {
		list := &rbacv1.ClusterRoleList{}
		if err := c.List(ctx, list); err != nil {
			return err
		}

		roles = nil

		for i := range list.Items {
			if name := list.Items[i].GetName(); strings.Contains(name, "xstores.roles.example.org") {
				roles = append(roles, name)
			}
		}

		// For Crossplane, and to edit, view and browse.
		if len(roles) < 4 {
			return fmt.Errorf("%v: %w", roles, world.ErrOther)
		}

		return nil
	})

	writers := 0

	for _, role := range roles {
		who := "has-" + role
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: who},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}},
		}

		if err := c.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), binding) })

		// The binding counts once its user may read the resource, as each role has it.
		world.Eventually(t, "the right to get of "+who, func(ctx context.Context) error {
			if !can(ctx, t, c, who, "get", "xstores", "") && !can(ctx, t, c, who, "get", "stores", "") {
				return world.ErrOther
			}

			return nil
		})

		for _, plural := range []string{"stores", "xstores"} {
			if can(t.Context(), t, c, who, "update", plural, "") {
				writers++
			}

			for _, verb := range []string{"initiate", "initiate:size"} {
				if can(t.Context(), t, c, who, verb, plural, "kausality") {
					t.Errorf("role %q grants %s of %s", role, verb, plural)
				}
			}
		}
	}

	if writers < 3 {
		t.Errorf("%d roles let anybody write: %v", writers, roles)
	}
}

// can reports whether a user may do something in the default namespace.
func can(ctx context.Context, t *testing.T, c client.Client, user, verb, plural, subresource string) bool {
	t.Helper()

	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: metav1.NamespaceDefault, Verb: verb, Group: "roles.example.org", Resource: plural, Subresource: subresource,
		},
	}}
	if err := c.Create(ctx, review); err != nil {
		t.Fatal(err)
	}

	return review.Status.Allowed
}
