// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// standalone is a managed resource that is in Git itself.
const standalone = `
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
metadata: {name: standalone, namespace: default, labels: {example: standalone}}
spec:
  providerConfigRef: {kind: ClusterProviderConfig, name: default}
  forProvider:
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: standalone, namespace: default}, data: {in: git}}
`

// standalonePolicy has it gated.
const standalonePolicy = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: standalone}
spec:
  match:
    apiGroup: kubernetes.m.crossplane.io
    kind: Object
    fields: [create, spec.forProvider]
    objectSelector: {matchLabels: {example: standalone}}
  subjects: [{kind: Group, name: "system:masters", mayInitiate: true}]
  allow: [{relation: External, mutations: [Create, Update]}]
`

// objects is whose turn it is to have a policy about Objects, or to read what is said of them: that names all policies
// about the kind.
var objects sync.Mutex

// takeObjects waits for its turn, and deletes a policy when the test is over.
func takeObjects(t *testing.T, c client.Client, policy *unstructured.Unstructured) {
	t.Helper()
	objects.Lock()

	t.Cleanup(func() {
		defer objects.Unlock()

		if err := c.Delete(context.WithoutCancel(t.Context()), policy); err != nil {
			t.Error(err)
		}
	})
}

// toolsLeaveGates has the tools apply a managed resource, and compare once its gate
// is closed.
func toolsLeaveGates(t *testing.T) {
	t.Helper()

	file := filepath.Join(t.TempDir(), "standalone.yaml")
	if err := os.WriteFile(file, []byte(standalone), 0o600); err != nil {
		t.Fatal(err)
	}

	admin := somebody(t)

	policy := world.Parse(t, []byte(standalonePolicy))[0]
	takeObjects(t, admin, policy)

	if err := admin.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(t.Context(), "a policy in force", func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil || resource.Ready(policy) {
			return err
		}

		return world.ErrOther
	}); err != nil {
		t.Fatal(err)
	}

	for _, tool := range []struct {
		gitops

		apply, same string
	}{
		{gitops{name: "flux", config: "kustomization.yaml"}, "apply", "unchanged"},
		{gitops{name: "argocd", config: "application.yaml"}, "sync", "Synced"},
	} {
		tool.run(t, tool.apply, file)

		if err := scenario.Eventually(t.Context(), "a closed gate", func(ctx context.Context) error {
			u := world.Parse(t, []byte(standalone))[0]
			if err := admin.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return err
			}

			if set := resource.Strings(u.Object, "spec", "managementPolicies"); !slices.Equal(set, []string{"Observe"}) {
				return fmt.Errorf("the gate is %q: %w", set, world.ErrOther)
			}

			return nil
		}); err != nil {
			t.Fatal(err)
		}

		tool.finds(t, file, tool.same)
	}
}
