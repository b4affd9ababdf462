// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// patience is how long a test waits for what it expects.
const patience = 90 * time.Second

// storeParts are the names of a store's resources.
func storeParts() []string { return []string{"cache", "data", "queue"} }

// storeComposition composes the parts, each with a label that tells which
// version of the Composition made it.
func storeComposition(parts []string, version string) string {
	var resources strings.Builder

	for _, part := range parts {
		fmt.Fprintf(&resources, `
      - name: %[1]s
        base:
          apiVersion: kubernetes.m.crossplane.io/v1alpha1
          kind: Object
          spec:
            providerConfigRef: {kind: ClusterProviderConfig, name: default}
            forProvider:
              manifest:
                apiVersion: v1
                kind: ConfigMap
                metadata: {namespace: default, name: store-%[1]s}
                data: {version: %[2]s}
        patches:
        - {fromFieldPath: spec.size, toFieldPath: spec.forProvider.manifest.data.size}`, part, version)
	}

	return `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: stores}
spec:
  compositeTypeRef: {apiVersion: shop.example.org/v1, kind: Store}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:` + resources.String() + `
  - step: ready
    functionRef: {name: function-auto-ready}
  - step: kausality
    functionRef: {name: function-kausality}
`
}

const store = `
apiVersion: shop.example.org/v1
kind: Store
metadata: {name: corner, namespace: default}
spec: {size: small}
`

// storeWindow lets Crossplane do as a new version of the Composition wants.
const storeWindow = `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: store-upgrade}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  validFrom: "2026-01-01T00:00:00Z"
  validUntil: "2126-01-01T00:00:00Z"
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data, delete]}
  - {relation: External, mutations: [%s]}
`

// apply applies YAML documents as a user; the empty user is the administrator.
func apply(t *testing.T, user, text string) {
	t.Helper()

	c := newClient(t)
	if user != "" {
		c = clientOf(t, user)
	}

	for dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(u); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}

		// A kind may be served a moment after its definition is there.
		eventually(t, "apply "+u.GetKind()+" "+u.GetName(), func(ctx context.Context) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership)
		})
	}
}

func clientOf(t *testing.T, user string) client.Client {
	t.Helper()

	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(running.Dir(), "users", user+".kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// eventually waits until a check passes.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()

	var last error

	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)

		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

// parts reads the managed resources of the store, by name in the Composition.
func parts(ctx context.Context, c client.Client) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "ObjectList"})

	if err := c.List(ctx, list, client.InNamespace("default"), client.MatchingLabels{"crossplane.io/composite": "corner"}); err != nil {
		return nil, err //nolint:wrapcheck // The caller tells.
	}

	out := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		out[resource.Annotation(&list.Items[i], "crossplane.io/composition-resource-name")] = &list.Items[i]
	}

	return out, nil
}

// external reads what a part stands for.
func external(ctx context.Context, c client.Client, part string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})

	err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "store-" + part}, u)

	return u, err //nolint:wrapcheck // The caller tells.
}

// shows checks that the external objects of parts have a value and that their
// gates are closed again.
func shows(c client.Client, key, value string, names ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		live, err := parts(ctx, c)
		if err != nil {
			return err
		}

		for _, name := range names {
			u, ok := live[name]
			if !ok {
				return fmt.Errorf("part %q is not there: %w", name, errOther)
			}

			rec, err := allowance.ParseGate(u)
			if err != nil || rec == nil || rec.State != v1alpha1.GateClosed {
				return fmt.Errorf("the gate of %q is %+v (%w)", name, rec, errors.Join(err, errOther))
			}

			out, err := external(ctx, c, name)
			if err != nil {
				return err
			}

			if got := resource.String(out.Object, "data", key); got != value {
				return fmt.Errorf("%s of %q is %q outside, want %q: %w", key, name, got, value, errOther)
			}
		}

		return nil
	}
}

var errOther = errors.New("not as expected")

// says checks what the store's Kausality condition says.
func says(c client.Client, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"})

		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "corner"}, u); err != nil {
			return err //nolint:wrapcheck // The caller tells.
		}

		got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

		for _, w := range words {
			if !strings.Contains(got.Message, w) {
				return fmt.Errorf("the condition says %q, not %q: %w", got.Message, w, errOther)
			}
		}

		return nil
	}
}

func TestANamespacedCompositeResourceOfThree(t *testing.T) {
	c := newClient(t)

	definitions, err := os.ReadFile("testdata/stores.yaml")
	if err != nil {
		t.Fatal(err)
	}

	apply(t, "", string(definitions)+"---"+storeComposition(storeParts(), "v1"))

	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"It is created, and its gates close", func(t *testing.T) {
			apply(t, "hans", store)
			eventually(t, "all parts are there", shows(c, "size", "small", storeParts()...))
			eventually(t, "it is settled", settled(c))
		}},
		{"An allowed change reaches all three", func(t *testing.T) {
			apply(t, "hans", strings.Replace(store, "small", "large", 1))
			eventually(t, "all parts are large", shows(c, "size", "large", storeParts()...))
			eventually(t, "it is settled", settled(c))
		}},
		{"A new version of the Composition is held, all of it", func(t *testing.T) {
			apply(t, "", storeComposition(storeParts(), "v2"))
			eventually(t, "three changes are held", says(c, "3 held", "spec.forProvider.manifest.data.version stays v1 (asked: v2)"))

			if err := shows(c, "version", "v1", storeParts()...)(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"An UpgradeAllowance releases it", func(t *testing.T) {
			apply(t, "", fmt.Sprintf(storeWindow, "Update"))
			eventually(t, "all parts are of the new version", shows(c, "version", "v2", storeParts()...))
			eventually(t, "nothing is held", settled(c))
		}},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// settled checks that everything of the store's generation has arrived.
func settled(c client.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "Store"})

		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "corner"}, u); err != nil {
			return err //nolint:wrapcheck // The caller tells.
		}

		got, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
		if got.Message != resource.SettledMessage(resource.Generation(u)) {
			return fmt.Errorf("at generation %d the condition says %q: %w", resource.Generation(u), got.Message, errOther)
		}

		return nil
	}
}
