// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package quiet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const namespace = "default"

const (
	// batch is how many composite resources are made at once.
	batch = 20
	// shared is the name of the Composition of most.
	shared = "stalls"
)

// market is where the stalls are, which are composite resources.
type market struct {
	admin, hans client.Client

	// ttl is after which time Crossplane runs a pipeline again.
	ttl time.Duration
}

func stallKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Stall"}
}

func objectKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "Object"}
}

func configMapKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
}

func newMarket(t *testing.T, ttl time.Duration) market {
	t.Helper()

	m := market{admin: world.Connect(t, running.Config()), hans: world.ConnectAs(t, running, "hans"), ttl: ttl}

	text, err := os.ReadFile(filepath.Join("testdata", "stalls.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	for _, u := range world.Parse(t, text) {
		world.Apply(t, m.admin, u)
	}

	return m
}

// composition makes a managed resource and a ConfigMap of a stall.
func (m market) composition(name, version string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: %[1]s}
spec:
  compositeTypeRef: {apiVersion: shop.example.org/v1, kind: Stall}
  mode: Pipeline
  pipeline:
  - step: count
    functionRef: {name: function-counter}
    input: {apiVersion: quiet.example.org/v1, kind: Input, ttl: %[3]s}
  - step: compose
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: sign
        base: {apiVersion: v1, kind: ConfigMap, data: {version: %[2]s}}
        patches:
        - {fromFieldPath: spec.size, toFieldPath: data.size}
        readinessChecks: [{type: None}]
      - name: goods
        base:
          apiVersion: kubernetes.m.crossplane.io/v1alpha1
          kind: Object
          spec:
            providerConfigRef: {kind: ClusterProviderConfig, name: default}
            forProvider:
              manifest:
                apiVersion: v1
                kind: ConfigMap
                metadata: {namespace: default}
                data: {version: %[2]s}
        patches:
        - {fromFieldPath: spec.size, toFieldPath: spec.forProvider.manifest.data.size}
        - {fromFieldPath: spec.note, toFieldPath: spec.forProvider.manifest.data.note}
        - fromFieldPath: metadata.name
          toFieldPath: spec.forProvider.manifest.metadata.name
          transforms: [{type: string, string: {type: Format, fmt: "%%s-goods"}}]
  - step: ready
    functionRef: {name: function-auto-ready}
  - step: kausality
    functionRef: {name: function-kausality}
`, name, version, m.ttl)
}

// compose writes a version of a Composition.
func (m market) compose(ctx context.Context, t *testing.T, name, version string) error {
	t.Helper()

	for _, u := range world.Parse(t, []byte(m.composition(name, version))) {
		if err := m.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test")); err != nil {
			return fmt.Errorf("cannot apply Composition %q: %w", name, err)
		}
	}

	return nil
}

// open makes stalls, some at a time, and waits until they have settled. Those that
// are changed by their Composition have one of their own.
func (m market) open(t *testing.T, own bool, names ...string) {
	t.Helper()

	for len(names) > 0 {
		some := names[:min(batch, len(names))]
		names = names[len(some):]

		for _, name := range some {
			composition := shared

			if own {
				composition = name

				if err := m.compose(t.Context(), t, name, "v0"); err != nil {
					t.Fatal(err)
				}
			}

			u := world.Prototype(stallKind())
			u.SetNamespace(namespace)
			u.SetName(name)
			u.Object["spec"] = map[string]any{"size": "small", "crossplane": map[string]any{"compositionRef": map[string]any{"name": composition}}}
			world.Apply(t, m.hans, u)
		}

		for _, name := range some {
			world.Eventually(t, name, m.settled(name))
		}
	}
}

// settled checks that a stall is, with nothing held.
func (m market) settled(name string) func(context.Context) error {
	return m.says(name, func(u *unstructured.Unstructured, message string) bool {
		return strings.HasPrefix(message, fixture.SettledMessage(resource.Generation(u))) && !fixture.Holds(message)
	})
}

// says checks what a stall's condition says.
func (m market) says(name string, ok func(u *unstructured.Unstructured, message string) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		u := world.Prototype(stallKind())
		if err := m.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
			return fmt.Errorf("cannot get a stall: %w", err)
		}

		got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if !ok(u, got.Message) {
			return fmt.Errorf("at generation %d %s says %q: %w", u.GetGeneration(), name, got.Message, world.ErrOther)
		}

		return nil
	}
}

// shows checks a value of a stall's goods, outside.
func (m market) shows(name, key, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		u := world.Prototype(configMapKind())
		if err := m.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-goods"}, u); err != nil {
			return fmt.Errorf("cannot get goods: %w", err)
		}

		if got := resource.String(u.Object, "data", key); got != value {
			return fmt.Errorf("%s of %s is %q outside, want %q: %w", key, name, got, value, world.ErrOther)
		}

		return nil
	}
}

// set writes a field of a stall.
func (m market) set(ctx context.Context, as client.Client, name, field, value string) error {
	u := world.Prototype(stallKind())
	u.SetNamespace(namespace)
	u.SetName(name)

	if err := as.Patch(ctx, u, world.Merge(fmt.Sprintf(`{"spec": {%q: %q}}`, field, value))); err != nil {
		return fmt.Errorf("cannot change %s of %s: %w", field, name, err)
	}

	return nil
}

// all lists the objects of a kind in the market.
func (m market) all(t *testing.T, gvk schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)

	if err := m.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}

	return list.Items
}
