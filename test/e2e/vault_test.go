// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// vault is a composite resource with one managed resource.
type vault struct {
	cluster
}

// newVault installs the kind.
func newVault(t *testing.T, name string) vault {
	t.Helper()

	v := vault{newCluster(t, "Vault", name)}
	if err := v.applyFile(t.Context(), "limits.yaml"); err != nil {
		t.Fatal(err)
	}

	return v
}

// composed says what the vault's Composition asks for; empty for no
// managementPolicies at all.
func (v vault) composed(ctx context.Context, policies string) error {
	if policies != "" {
		policies = "\n            managementPolicies: " + policies
	}

	var patches strings.Builder
	for _, field := range []string{"size", "tier", "engine"} {
		fmt.Fprintf(&patches, "\n        - {fromFieldPath: spec.%[1]s, toFieldPath: spec.forProvider.manifest.data.%[1]s}", field)
	}

	return v.apply(ctx, admin, `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: vault-`+v.name+`}
spec:
  compositeTypeRef: {apiVersion: shop.example.org/v1, kind: Vault}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: data
        base:
          apiVersion: kubernetes.m.crossplane.io/v1alpha1
          kind: Object
          spec:
            providerConfigRef: {kind: ClusterProviderConfig, name: default}`+policies+`
            forProvider:
              manifest: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: `+v.name+`-data}}
        patches:`+patches.String()+`
  - step: ready
    functionRef: {name: function-auto-ready}
  - step: kausality
    functionRef: {name: function-kausality}
`)
}

// asked is a step that makes the vault with a Composition, or changes it, as
// hans.
func (v vault) asked(ctx context.Context, fields string) error {
	return v.apply(ctx, hans, fmt.Sprintf(`
apiVersion: shop.example.org/v1
kind: Vault
metadata: {name: %[1]s, namespace: default}
spec: {%[2]s, crossplane: {compositionRef: {name: vault-%[1]s}}}
`, v.name, fields))
}

// data reads the managed resource.
func (v vault) data(ctx context.Context) (*unstructured.Unstructured, error) {
	parts, err := v.parts(ctx, objectKind())
	if err != nil {
		return nil, err
	}

	u, ok := parts["data"]
	if !ok {
		return nil, fmt.Errorf("vault %q has no managed resource: %w", v.name, world.ErrOther)
	}

	return u, nil
}

// wants checks a field of the managed resource, whatever is outside.
func (v vault) wants(field, value string) check {
	return func(ctx context.Context) error {
		u, err := v.data(ctx)
		if err != nil {
			return err
		}

		if got := resource.String(u.Object, "spec", "forProvider", "manifest", "data", field); got != value {
			return fmt.Errorf("the managed resource wants %s %q, not %q: %w", field, got, value, world.ErrOther)
		}

		return nil
	}
}

// has checks a field of the external object, whatever the gate is.
func (v vault) has(field, value string) check {
	return func(ctx context.Context) error {
		u, err := v.configMap(ctx, v.name+"-data")
		if err != nil {
			return err
		}

		if got := resource.String(u.Object, "data", field); got != value {
			return fmt.Errorf("%s is %q outside, not %q: %w", field, got, value, world.ErrOther)
		}

		return nil
	}
}

// gated checks the managed resource's policies and the state of its gate.
func (v vault) gated(state v1alpha1.GateState, set ...string) check {
	return func(ctx context.Context) error {
		u, err := v.data(ctx)
		if err != nil {
			return err
		}

		rec, err := allowance.ParseGate(u)
		if err != nil || rec == nil || rec.State != state {
			return fmt.Errorf("the gate is %+v, not %s: %w", rec, state, errors.Join(err, world.ErrOther))
		}

		if got := policies(u); !slices.Equal(got, set) {
			return fmt.Errorf("managementPolicies are %v, not %v: %w", got, set, world.ErrOther)
		}

		return nil
	}
}

func policies(u *unstructured.Unstructured) []string {
	return resource.Strings(u.Object, "spec", "managementPolicies")
}

// synced checks what the provider reports.
func (v vault) synced(words ...string) check {
	return func(ctx context.Context) error {
		u, err := v.data(ctx)
		if err != nil {
			return err
		}

		c, _ := resource.ConditionOf(u, resource.ConditionSynced)
		if !mentions(c.Status+" "+c.Reason+" "+c.Message, words...) {
			return fmt.Errorf("the provider says %+v, not %q: %w", c, words, world.ErrOther)
		}

		return nil
	}
}

// patchData patches the managed resource's metadata as an administrator.
func (v vault) patchData(ctx context.Context, annotation, value string) error {
	u, err := v.data(ctx)
	if err != nil {
		return err
	}

	return v.Patch(ctx, u, world.Merge(fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, annotation, value)))
}

// sets are the policies that the managed resource has one after the other.
type sets struct {
	mu sync.Mutex
	// seen has each set once in a row; wrong what a provider cannot do with.
	seen, wrong []string
}

// follow watches a managed resource.
func (v vault) follow(t *testing.T, u *unstructured.Unstructured) (*sets, error) {
	t.Helper()

	d, err := dynamic.NewForConfig(running.Config())
	if err != nil {
		return nil, err
	}

	w, err := d.Resource(u.GroupVersionKind().GroupVersion().WithResource("objects")).Namespace(u.GetNamespace()).
		Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
	if err != nil {
		return nil, err
	}

	t.Cleanup(w.Stop)

	s := &sets{}

	go func() {
		for e := range w.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok {
				s.add(u)
			}
		}
	}()

	return s, nil
}

func (s *sets) add(u *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()

	set := strings.Join(policies(u), ",")
	if n := len(s.seen); n == 0 || s.seen[n-1] != set {
		s.seen = append(s.seen, set)
	}

	if c, _ := resource.ConditionOf(u, resource.ConditionSynced); strings.Contains(c.Message, "not supported") ||
		set != "" && !management.Supported(policies(u)) {
		s.wrong = append(s.wrong, set+": "+c.Message)
	}
}

// were checks which sets there were, and that the provider could do with all of
// them.
func (s *sets) were(want ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.wrong) > 0 || !slices.Equal(s.seen, want) {
		return fmt.Errorf("managementPolicies were %q, not %q; not supported: %q: %w", s.seen, want, s.wrong, world.ErrOther)
	}

	return nil
}

// followed watches the vault's managed resource.
func (v vault) followed(t *testing.T) (*sets, error) {
	t.Helper()

	u, err := v.data(t.Context())
	if err != nil {
		return nil, err
	}

	return v.follow(t, u)
}

// made is a step that makes a small vault of tier one.
func (v vault) made(policies string, set ...string) scenario.Step {
	return scenario.Step{Title: "A vault is made", Run: func(ctx context.Context) error {
		if err := errors.Join(v.composed(ctx, policies), v.asked(ctx, "size: small, tier: one, engine: old")); err != nil {
			return err
		}

		return scenario.Eventually(ctx, "a small vault", all(v.has("size", "small"), v.gated(v1alpha1.GateClosed, set...), v.settled, v.kept))
	}}
}

const (
	setClosed = "Observe"
	setUpdate = "Observe,LateInitialize,Update"
	setRemake = "Observe,LateInitialize,Create"
	setNarrow = "Observe,Update"
)

func split(set string) []string { return strings.Split(set, ",") }
