// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package cookbook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/cookbook"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// manager is the user about whose requests nobody is asked: it puts on the stage what was there before.
const manager = "system:serviceaccount:kausality-system:kausality-manager"

// A stage is where scenarios are played, one at a time.
type stage struct {
	admin, manager client.Client
	connect        func()

	// inForce is what is applied, by [key].
	inForce map[string]placed
	// kinds are those that are defined, by the names of their CRDs.
	kinds map[string]string
	// props are the objects of the scenario that is played.
	props []*unstructured.Unstructured
}

// placed is an object that is applied, as it was asked for.
type placed struct {
	object *unstructured.Unstructured
	text   string
	at     int
}

// newStage has all kinds there that plays are about, and lets everybody do what a scenario may have them
// do, as far as roles go.
func newStage(t *testing.T, plays []cookbook.Play) *stage {
	t.Helper()

	s := &stage{inForce: map[string]placed{}, kinds: map[string]string{}}
	s.connect = func() {
		s.admin, s.manager = world.Connect(t, running.Config()), world.Impersonate(t, running, manager, "system:masters")
	}

	s.connect()

	for _, u := range world.Parse(t, []byte(everybody)) {
		world.Apply(t, s.admin, u)
	}

	for _, play := range plays {
		for i := range play.Scenarios {
			if play.Scenarios[i].Request == nil {
				continue
			}

			for _, crd := range kindsOf(&play.Scenarios[i]) {
				if s.kinds[crd.GetName()] == "" {
					world.Must(t, s.define(t.Context(), []*unstructured.Unstructured{crd}))
				}
			}
		}
	}

	return s
}

// everybody may write what scenarios are about, and not the subresource kausality of it. Crossplane may read
// parameters.
const everybody = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: everybody}
rules:
- apiGroups: [example.org, rds.aws.upbound.io, argoproj.io, ""]
  resources: [databases, databaseclaims, xdatabases, caches, queues, platforms, rdsinstances, applications, pods, persistentvolumeclaims]
  verbs: [create, delete, get, patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everybody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: everybody}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
---
# As kubectl kausality doctor --roles has it.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: parameters}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [platform.example.org], resources: [sizelimits], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: parameters}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: parameters}
subjects: [{kind: ServiceAccount, namespace: crossplane-system, name: crossplane}]
`

// key tells objects apart.
func key(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + "/" + u.GetNamespace() + "/" + u.GetName()
}

// force has just these objects in force, and waits until they are.
func (s *stage) force(ctx context.Context, objects []*unstructured.Unstructured) error {
	wanted := map[string]bool{}
	for _, u := range objects {
		wanted[key(u)] = true
	}

	// What is defined goes after what is of it.
	old := slices.SortedFunc(maps.Values(s.inForce), func(a, b placed) int { return b.at - a.at })
	for _, p := range old {
		if !wanted[key(p.object)] {
			if err := s.remove(ctx, s.admin, p.object); err != nil {
				return err
			}

			delete(s.inForce, key(p.object))
		}
	}

	for i, u := range objects {
		raw, err := json.Marshal(u.Object)
		if err != nil {
			return err
		}

		if s.inForce[key(u)].text == string(raw) {
			continue
		}

		s.inForce[key(u)] = placed{object: u, at: i} // It goes, whatever becomes of it.

		if err := s.apply(ctx, u); err != nil {
			return fmt.Errorf("cannot apply %s %q: %w", u.GetKind(), u.GetName(), err)
		}

		s.inForce[key(u)] = placed{u, string(raw), i}
	}

	return nil
}

// define has kinds be defined as they are asked for. They stay, for the next scenario.
func (s *stage) define(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		raw, err := json.Marshal(crd.Object)
		if err != nil {
			return err
		}

		if s.kinds[crd.GetName()] == string(raw) {
			continue
		}

		live := world.Prototype(crd.GroupVersionKind())

		err = s.admin.Get(ctx, client.ObjectKeyFromObject(crd), live)
		if client.IgnoreNotFound(err) != nil {
			return err
		}

		// Namespaced or not it is for good.
		if asked := resource.String(crd.Object, "spec", "scope"); err == nil && resource.String(live.Object, "spec", "scope") != asked {
			if err := s.remove(ctx, s.admin, crd); err != nil {
				return err
			}
		}

		if err := s.apply(ctx, crd); err != nil {
			return err
		}

		s.kinds[crd.GetName()] = string(raw)
	}

	return nil
}

// apply applies an object, and waits until it is in force.
func (s *stage) apply(ctx context.Context, u *unstructured.Unstructured) error {
	if err := s.namespace(ctx, u.GetNamespace(), nil); err != nil {
		return err
	}

	live := u.DeepCopy()
	if err := s.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(live), client.FieldOwner("cookbook"), client.ForceOwnership); err != nil {
		return err
	}

	if live.GroupVersionKind().Group != v1alpha1.Group {
		return nil
	}

	return scenario.Eventually(ctx, "being in force", func(ctx context.Context) error {
		if err := s.admin.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
			return err
		}

		seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if !resource.Ready(live) || seen != live.GetGeneration() {
			return fmt.Errorf("status %v of generation %d: %w", live.Object["status"], live.GetGeneration(), world.ErrOther)
		}

		return nil
	})
}

// namespace has a namespace be there, and, where they are given, with just these labels.
func (s *stage) namespace(ctx context.Context, name string, labels map[string]string) error {
	if name == "" {
		return nil
	}

	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)

	if err := s.admin.Get(ctx, client.ObjectKeyFromObject(u), u); apierrors.IsNotFound(err) {
		account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
		account.SetNamespace(name)
		account.SetName("default")

		// As a controller would that is not there.
		err = s.admin.Create(ctx, u)
		if err == nil {
			err = s.admin.Create(ctx, account)
		}

		if err != nil {
			return err
		}
	}

	if labels == nil {
		return nil
	}

	u.SetLabels(labels)

	return s.admin.Update(ctx, u)
}

// remove deletes an object whatever keeps it, and reports whether it is gone.
func (s *stage) remove(ctx context.Context, as client.Client, u *unstructured.Unstructured) error {
	live := world.Prototype(u.GroupVersionKind())

	err := as.Get(ctx, client.ObjectKeyFromObject(u), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}

	if err == nil && len(live.GetFinalizers()) > 0 && !ours(u) {
		err = as.Patch(ctx, live, world.Merge(`{"metadata": {"finalizers": null}}`))
	}

	if err == nil {
		err = client.IgnoreNotFound(as.Delete(ctx, live, client.GracePeriodSeconds(0)))
	}

	if err != nil {
		return fmt.Errorf("cannot remove %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if err := as.Get(ctx, client.ObjectKeyFromObject(u), live); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %q is still there: %w", u.GetKind(), u.GetName(), errors.Join(err, world.ErrOther))
	}

	return nil
}

// ours reports whether an object is what the API server itself or the manager has to let go.
func ours(u *unstructured.Unstructured) bool {
	return u.GetKind() == "CustomResourceDefinition" || u.GroupVersionKind().Group == v1alpha1.Group
}
