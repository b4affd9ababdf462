// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Who has which of Crossplane's roles, in the whole cluster.
const (
	emil = "plaza-emil" // crossplane-edit
	ella = "plaza-ella" // crossplane-edit
	ada  = "plaza-ada"  // crossplane-admin
)

// plaza is a composite resource that composes another one, and what Crossplane's RBAC manager lets people do
// with either, and with what is composed.
type plaza struct {
	cluster

	below    cluster
	pendings pendings
}

func newPlaza(t *testing.T) plaza {
	t.Helper()

	c := newCluster(t, "Plaza", "editors")
	p := plaza{c, c.of("Store", "editors-store"), pendingsOf(t, "shop.example.org/v1", "Plaza", namespace, c.name)}

	for role, users := range map[string][]rbacv1.Subject{
		"crossplane-edit":  {userNamed(emil), userNamed(ella)},
		"crossplane-admin": {userNamed(ada)},
	} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "plaza-" + role}, Subjects: users,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		if err := c.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), binding) })
	}

	return p
}

// brought are kinds that a revision of a Provider says that it brought, as Kausality does where it is installed as one.
func brought() []string {
	return []string{"objects.kubernetes.m.crossplane.io", "changeapprovals.kausality.io", "allowancepolicies.kausality.io"}
}

// install makes the definitions, and has there be a revision of a Provider.
func (p plaza) install(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join("testdata", "malls.yaml"))
	if err != nil {
		return err
	}

	plazas := strings.NewReplacer("Mall", "Plaza", "malls", "plazas", "mall-", "plaza-").Replace(string(text))
	if err := errors.Join(p.applyFile(ctx, "crossplane-roles.yaml"), p.applyFile(ctx, "stores.yaml"), p.apply(ctx, admin, plazas),
		p.apply(ctx, admin, storeComposition("plaza-stores", "v1", "data"))); err != nil {
		return err
	}

	revision := world.Prototype(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "ProviderRevision"})
	revision.SetName("provider-of-kinds")

	refs := make([]string, 0, len(brought()))
	for _, name := range brought() {
		refs = append(refs, fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": %q, "uid": "0"}`, name))
	}

	status := world.Merge(`{"status": {"objectRefs": [` + strings.Join(refs, ", ") + `]}}`)
	if err := p.Status().Patch(ctx, revision.DeepCopy(), status); err != nil {
		return err
	}

	// The RBAC manager looks at none that is paused.
	return p.Patch(ctx, revision, world.Merge(`{"metadata": {"annotations": {"crossplane.io/paused": null}}}`))
}

// kinds are those that the plaza and its store compose, and the names of what is of them.
func (p plaza) kinds(ctx context.Context) (map[string]string, error) {
	live, err := p.below.parts(ctx, objectKind())
	if err != nil {
		return nil, err
	}

	object, ok := live["data"]
	if !ok {
		return nil, fmt.Errorf("the store has no data: %w", world.ErrOther)
	}

	return map[string]string{
		"Store": "stores.shop.example.org/" + p.below.name, "Object": "objects.kubernetes.m.crossplane.io/" + object.GetName(),
	}, nil
}

// TestWhoHasCrossplanesRolesEditsAndDoesNotApprove as these name no subresource but status, whichever the
// verbs; who has a right on kausality does.
func TestWhoHasCrossplanesRolesEditsAndDoesNotApprove(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	p := newPlaza(t)
	people := map[string]approver{}

	for _, name := range []string{emil, ella, ada} {
		people[name] = approverNamed(t, name) // They may make ChangeApprovals, and list them.
	}

	approves := rbacv1.PolicyRule{
		APIGroups: []string{"shop.example.org", "kubernetes.m.crossplane.io", ""},
		Resources: []string{"stores/kausality", "objects/kausality", "configmaps/kausality"}, Verbs: []string{v1alpha1.VerbApprove},
	}

	grant := func(name, user string, rule rbacv1.PolicyRule) { p.grant(t, name, userNamed(user), rule, false) }

	p.play(t, []scenario.Step{
		{Title: "Crossplane's RBAC manager gives them all verbs on what is defined, and on what a Provider brings", Run: func(ctx context.Context) error {
			if err := p.install(ctx); err != nil {
				return err
			}

			begun := time.Now()

			for name := range people {
				for _, object := range append([]string{"plazas.shop.example.org", "stores.shop.example.org"}, brought()...) {
					if err := scenario.Eventually(ctx, name+" having all verbs on "+object, func(ctx context.Context) error {
						// Also one that nobody has heard of.
						for _, verb := range []string{"update", "delete", "praise"} {
							if yes, err := p.canI(ctx, name, verb, object, ""); !yes {
								return fmt.Errorf("may not %s %s: %w", verb, object, errors.Join(err, world.ErrOther))
							}
						}

						return nil
					}); err != nil {
						return err
					}
				}
			}

			t.Logf("it took %s until they had", time.Since(begun).Round(time.Second/10))

			return nil
		}},
		{Title: "An editor edits what somebody else has made, and it is held, beside what a new Composition asks for", Run: func(ctx context.Context) error {
			if err := p.apply(ctx, hans, sized("Plaza", p.name, "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small plaza", all(p.below.shows("size", "small", "data"), p.below.settled, p.settled)); err != nil {
				return err
			}

			xr, err := p.xr(ctx)
			if err != nil {
				return err
			}

			if err := impersonate(t, emil).Patch(ctx, xr, world.Merge(`{"spec": {"size": "huge"}}`)); err != nil {
				return err
			}

			if err := p.apply(ctx, admin, storeComposition("plaza-stores", "v2", "data")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list", p.pendings.lists([]string{emil},
				held{kind: "Store", field: "spec.size", to: "huge", parent: "Plaza", cause: v1alpha1.CauseEdit, user: emil},
				held{kind: "Object", field: "spec.forProvider.manifest.data.version", to: "v2", parent: "Store"},
				held{kind: "ConfigMap", field: "data.version", to: "v2", parent: "Store"}))
		}},
		{Title: "Nobody of them approves any of it, as kubectl auth can-i says", Run: func(ctx context.Context) error {
			kinds, err := p.kinds(ctx)
			if err != nil {
				return err
			}

			for name, who := range people {
				for kind, object := range kinds {
					for _, verb := range []string{v1alpha1.VerbApprove, v1alpha1.VerbApproveDestructive, v1alpha1.VerbBreakGlass} {
						if yes, err := p.canI(ctx, name, verb, object, v1alpha1.SubresourceKausality); yes || err != nil {
							return fmt.Errorf("%s may %s %s: %w", name, verb, object, errors.Join(err, world.ErrOther))
						}
					}

					if name == emil {
						continue // He asks for what is held: see below.
					}

					err := who.decide(ctx, p.pendings, "by-role", v1alpha1.DecisionApprove, ofKind(kind))
					if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not approve changes of "+kind) {
						return fmt.Errorf("%s approves %s: %w", name, object, errors.Join(err, world.ErrOther))
					}

					t.Logf("%s: %v", name, err)
				}
			}

			return nil
		}},
		{Title: "Who gets the right may, and who asked for it may not", Run: func(ctx context.Context) error {
			grant("plaza-approves", ella, approves)
			grant("plaza-approves-own", emil, approves)

			kinds, err := p.kinds(ctx)
			if err != nil {
				return err
			}

			for _, object := range kinds {
				for _, name := range []string{ella, emil} {
					if err := scenario.Eventually(ctx, "the right of "+name, func(ctx context.Context) error {
						if yes, err := p.canI(ctx, name, v1alpha1.VerbApprove, object, v1alpha1.SubresourceKausality); !yes {
							return fmt.Errorf("to approve %s: %w", object, errors.Join(err, world.ErrOther))
						}

						return nil
					}); err != nil {
						return err
					}
				}
			}

			// That he has not the right is remembered for a moment.
			if err := scenario.Eventually(ctx, "a refusal of his own", func(ctx context.Context) error {
				err := people[emil].decide(ctx, p.pendings, "own", v1alpha1.DecisionApprove, ofKind("Store"))
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "requested the change and cannot approve it") {
					return errors.Join(err, world.ErrOther)
				}

				return nil
			}); err != nil {
				return err
			}

			if err := people[ella].approve(ctx, p.pendings, "granted", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a huge plaza of the new version", all(p.pendings.becomes("granted", v1alpha1.ApprovalStateApplied),
				p.below.shows("version", "v2", "data"), func(ctx context.Context) error {
					xr, err := p.below.xr(ctx)
					if err == nil && resource.String(xr.Object, "spec", "size") != "huge" {
						err = world.ErrOther
					}

					return err
				}))
		}},
		{Title: "A role with all verbs on all resources of a group is another matter", Run: func(ctx context.Context) error {
			const wilma = "plaza-wilma"

			kinds, err := p.kinds(ctx)
			if err != nil {
				return err
			}

			grant("plaza-all", wilma, rbacv1.PolicyRule{APIGroups: []string{"shop.example.org"}, Resources: []string{"*"}, Verbs: []string{"*"}})

			return scenario.Eventually(ctx, "its right to approve", func(ctx context.Context) error {
				for kind, want := range map[string]bool{"Store": true, "Object": false} {
					if yes, err := p.canI(ctx, wilma, v1alpha1.VerbApprove, kinds[kind], v1alpha1.SubresourceKausality); yes != want || err != nil {
						return fmt.Errorf("to approve a change of a %s: %t: %w", kind, yes, errors.Join(err, world.ErrOther))
					}
				}

				return nil
			})
		}},
	})
}
