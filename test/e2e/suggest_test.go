// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// shelves are the kinds of examples/claim-with-ticket under other names, for its own policies
// are in force beside those that are suggested.
func shelves(t *testing.T, file string) []byte {
	t.Helper()

	raw, err := os.ReadFile("../../examples/claim-with-ticket/" + file)
	if err != nil {
		t.Fatal(err)
	}

	return []byte(strings.NewReplacer("example.org", "shop.example.org", "DatabaseClaim", "ShelfClaim", "databaseclaims", "shelfclaims",
		"XDatabase", "XShelf", "xdatabases", "xshelves", "my-database", "my-shelf").Replace(string(raw)))
}

// TestWhatIsSuggestedIsInForce plays an allowed and a held change by the policies that the
// command suggests for a Composition of the cluster.
func TestWhatIsSuggestedIsInForce(t *testing.T) {
	world.Long(t)
	t.Parallel()

	admin := world.Connect(t, running.Config())
	hans := world.Impersonate(t, running, "hans@example.com", "platform-team", "system:masters")
	anna := world.Impersonate(t, running, "anna@example.com", "app-team", "system:masters")

	for _, file := range []string{"xrd.yaml", "composition.yaml"} {
		for _, u := range world.Parse(t, shelves(t, file)) {
			world.Apply(t, admin, u)
		}
	}

	for _, u := range world.Parse(t, []byte(suggestFor(t, "xshelves.shop.example.org"))) {
		world.Apply(t, admin, u)
	}

	world.Apply(t, hans, world.Parse(t, shelves(t, "claim.yaml"))[0])

	claim := schema.GroupVersionKind{Group: "shop.example.org", Version: "v1alpha1", Kind: "ShelfClaim"}
	key := client.ObjectKey{Namespace: "default", Name: "my-shelf"}

	world.Eventually(t, "the shelf has settled", func(ctx context.Context) error {
		return outsideAs(ctx, admin, claim, key, "small", v1alpha1.ReasonAllowed)
	})

	resizeTo(t, hans, claim, key, "large")
	world.Eventually(t, "the change of hans is made outside", func(ctx context.Context) error {
		return outsideAs(ctx, admin, claim, key, "large", v1alpha1.ReasonAllowed)
	})

	resizeTo(t, anna, claim, key, "medium")
	world.Eventually(t, "the change of anna is held", func(ctx context.Context) error {
		return outsideAs(ctx, admin, claim, key, "large", v1alpha1.ReasonHeld)
	})
}

// suggestFor runs the command on a Composition of the cluster.
func suggestFor(t *testing.T, composition string) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), filepath.Join(running.BinDir(), "kubectl-kausality"), "suggest", composition,
		"--subject=Group=platform-team", "--kubeconfig="+filepath.Join(running.Dir(), "kubeconfig"))
	cmd.Stderr = t.Output()

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot suggest policies: %v", err)
	}

	return string(out)
}

// resizeTo changes the size of a claim.
func resizeTo(t *testing.T, c client.Client, gvk schema.GroupVersionKind, key client.ObjectKey, size string) {
	t.Helper()

	u := world.Prototype(gvk)
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)

	if err := c.Patch(t.Context(), u, world.Merge(fmt.Sprintf(`{"spec":{"size":%q}}`, size))); err != nil {
		t.Fatal(err)
	}
}

// outsideAs is nil once the external object of a claim has a size, and the claim's condition
// a reason.
func outsideAs(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, key client.ObjectKey, size, reason string) error {
	claim := world.Prototype(gvk)
	if err := c.Get(ctx, key, claim); err != nil {
		return err
	}

	outside := &corev1.ConfigMap{}
	name := resource.String(claim.Object, "spec", "resourceRef", "name")

	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, outside); err != nil {
		return err
	}

	said, _ := resource.ConditionOf(claim, v1alpha1.ConditionKausality)
	if outside.Data["size"] != size || said.Reason != reason || !strings.Contains(said.Message, "settled") {
		return fmt.Errorf("size %q, %s: %s (%w)", outside.Data["size"], said.Reason, said.Message, world.ErrOther)
	}

	return nil
}
