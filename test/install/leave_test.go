// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// leaves removes Kausality for good, as the README says.
func (l *life) leaves(t *testing.T, p packages) {
	t.Helper()

	// 1. The function goes out of the Composition first.
	composition := prototype("apiextensions.crossplane.io", "v1", "Composition")
	composition.SetName("xdatabases.example.org")

	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/pipeline/2"}]`))
	if err := l.c.Patch(t.Context(), composition, patch); err != nil {
		t.Fatal(err)
	}

	// 2. The packages; the Configuration first, or it brings back what it depends on.
	l.delete(t, pkg("Configuration", configurationName), pkg("Provider", providerName), pkg("Function", functionName))
	l.stop(t, p)

	// 3. What the manager kept.
	if said, err := l.uninstall(t, "--remove-crds"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}

	world.Eventually(t, "the end of our kinds", func(ctx context.Context) error {
		for _, name := range definitions() {
			crd := prototype("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
			if err := l.c.Get(ctx, client.ObjectKey{Name: name}, crd); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s: %w (%v)", name, world.ErrOther, err) //nolint:errorlint // Maybe none.
			}
		}

		return nil
	})

	// 4. The database is as its Composition asks for, and Crossplane's again.
	l.open(t)
}

// uninstallsUnderAManager starts what removes nothing, for a manager runs, which
// it finds wherever it is installed. It returns what checks that; until then one
// has to run.
func (l *life) uninstallsUnderAManager(t *testing.T) func() {
	t.Helper()

	done := make(chan func(), 1)

	go func() {
		said, err := l.uninstall(t)
		done <- func() {
			if err == nil || !strings.Contains(said, `the manager runs in namespace "crossplane-system"`) {
				t.Errorf("Under a manager that runs: %v: %s", err, said)
			}
		}
	}()

	return func() { (<-done)() }
}

// open waits until the managed resource is nobody's but Crossplane's, which
// applies what hans wants without anybody else.
func (l *life) open(t *testing.T) {
	t.Helper()

	l.db.resize(t, "small")

	world.Eventually(t, "an ungoverned change", func(ctx context.Context) error {
		if err := l.db.read(ctx); err != nil {
			return err
		}

		policies := resource.Strings(l.db.managed.Object, "spec", "managementPolicies")
		if got, err := l.db.outside(ctx); err != nil || got != "small" || !slices.Equal(policies, []string{"*"}) {
			return fmt.Errorf("%q outside, managementPolicies %q: %w (%v)", got, policies, world.ErrOther, err) //nolint:errorlint // Maybe none.
		}

		if slices.Contains(l.db.managed.GetFinalizers(), v1alpha1.Finalizer) {
			return fmt.Errorf("finalizers %q: %w", l.db.managed.GetFinalizers(), world.ErrOther)
		}

		return nil
	})
}

// uninstall runs the command that removes what the manager kept.
func (l *life) uninstall(t *testing.T, args ...string) (string, error) {
	t.Helper()

	args = append([]string{"uninstall", "--leave=open", "--kubeconfig", filepath.Join(running.Dir(), "kubeconfig")}, args...)
	said, err := exec.CommandContext(t.Context(), l.plugin, args...).CombinedOutput()

	return string(said), err
}

// kausality runs the plugin and reads what it says.
func (l *life) kausality(t *testing.T, into any, args ...string) {
	t.Helper()

	args = append(args, "--kubeconfig", filepath.Join(running.Dir(), "kubeconfig"))

	said, err := exec.CommandContext(t.Context(), l.plugin, args...).Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, said)
	}

	if err := json.Unmarshal(said, into); err != nil {
		t.Fatalf("%q: %v: %s", args, err, said)
	}
}

// gone waits until an object is.
func (c *cluster) gone(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()

	world.Eventually(t, "the end of "+u.GetName(), func(ctx context.Context) error {
		live := prototype(u.GroupVersionKind().Group, u.GroupVersionKind().Version, u.GetKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), live); !apierrors.IsNotFound(err) && (u.GetUID() == "" || live.GetUID() == u.GetUID()) {
			return fmt.Errorf("it is there: %w (%v)", world.ErrOther, err) //nolint:errorlint // Maybe none.
		}

		return nil
	})
}

func compare(want, got any) string { return cmp.Diff(want, got) }
