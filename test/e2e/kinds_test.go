// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

const vaultReady = `{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"}`

func vaultKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "old.example.org", Version: "v1", Kind: "Vault"}
}

// watches checks whether the manager watches a kind.
func watches(gvk schema.GroupVersionKind, want bool) check {
	line := fmt.Sprintf("kausality_watched_kinds{group=%q,kind=%q,version=%q} 1", gvk.Group, gvk.Kind, gvk.Version)

	return func(ctx context.Context) error {
		text, err := scraped(ctx)
		if err == nil && strings.Contains(text, line) != want {
			err = fmt.Errorf("%s: want %t: %w", line, want, world.ErrOther)
		}

		return err
	}
}

// part is the one composed resource of a kind.
func (c cluster) part(ctx context.Context, gvk schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	live, err := c.parts(ctx, gvk)
	if err != nil {
		return nil, err
	}

	if live[name] == nil {
		return nil, fmt.Errorf("%q is not there: %w", name, world.ErrOther)
	}

	return live[name], nil
}

// vault checks the state of a vault's gate, and its set.
func (c cluster) vault(state v1alpha1.GateState, set ...string) check {
	return func(ctx context.Context) error {
		u, err := c.part(ctx, vaultKind(), "vault")
		if err != nil {
			return err
		}

		return gateOf(u, state, set...)
	}
}

func gateOf(u *unstructured.Unstructured, state v1alpha1.GateState, set ...string) error {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil || rec.State != state {
		return fmt.Errorf("the gate of %q is %+v (%w)", u.GetName(), rec, errors.Join(err, world.ErrOther))
	}

	if got := resource.Strings(u.Object, "spec", "managementPolicies"); strings.Join(got, ",") != strings.Join(set, ",") {
		return fmt.Errorf("the policies of %q are %v, want %v: %w", u.GetName(), got, set, world.ErrOther)
	}

	return nil
}

// reports sets a vault's conditions, as its provider would: without a generation.
func (c cluster) reports(ctx context.Context, conditions ...string) error {
	u, err := c.part(ctx, vaultKind(), "vault")
	if err != nil {
		return err
	}

	return c.Status().Patch(ctx, u, world.Merge(`{"status": {"conditions": [`+strings.Join(conditions, ",")+`]}}`))
}

// makes notes on a vault that its provider has made its external object.
func (c cluster) makes(ctx context.Context) error {
	u, err := c.part(ctx, vaultKind(), "vault")
	if err != nil {
		return err
	}

	return c.Patch(ctx, u, world.Merge(
		`{"metadata": {"annotations": {"crossplane.io/external-create-succeeded": "`+time.Now().UTC().Format(time.RFC3339)+`"}}}`))
}

func vaultSynced() string {
	return `{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
}

// opens has an administrator open the gate of a vault by hand.
func (c cluster) opens(ctx context.Context) error {
	u, err := c.part(ctx, vaultKind(), "vault")
	if err != nil {
		return err
	}

	return c.Patch(ctx, u, world.Merge(`{"spec": {"managementPolicies": ["*"]}}`), client.DryRunAll)
}

// undeletable checks that an administrator cannot delete the vault.
func (c cluster) undeletable(ctx context.Context) error {
	u, err := c.part(ctx, vaultKind(), "vault")
	if err != nil {
		return err
	}

	if err := c.Delete(ctx, u, client.DryRunAll); !apierrors.IsForbidden(err) || !mentions(err.Error(), "gate is not open for Delete") {
		return fmt.Errorf("deleting by hand: %w", errors.Join(err, world.ErrOther))
	}

	return nil
}

// TestWhatTheFunctionComposesIsGatedThoughNobodyNamesIt does not run beside
// others, for the manager is restarted.
func TestWhatTheFunctionComposesIsGatedThoughNobodyNamesIt(t *testing.T) {
	world.Long(t)

	c := newCluster(t, "Bank", "north")
	vaults := client.Object(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "vaults.old.example.org"},
	}})

	c.play(t, []scenario.Step{
		{Title: "A kind that is not there yet is gated once it is", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "banks.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, sized("Bank", "north", "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a watch of banks", watches(c.kind, true)); err != nil {
				return err
			}

			if err := c.applyFile(ctx, "vaults.yaml"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a new vault", all(
				c.vault(v1alpha1.GateOpen, "Observe", "Create"), watches(vaultKind(), true)))
		}},
		{Title: "Its watch ends with its definition, and comes back with it", Run: func(ctx context.Context) error {
			if err := c.Delete(ctx, vaults); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "no watch of vaults", watches(vaultKind(), false)); err != nil {
				return err
			}

			if err := c.applyFile(ctx, "vaults.yaml"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "another vault", all(
				c.vault(v1alpha1.GateOpen, "Observe", "Create"), watches(vaultKind(), true)))
		}},
		{Title: "Its gate closes to Observe, for its provider is older, once it is ready", Run: func(ctx context.Context) error {
			if err := c.makes(ctx); err != nil {
				return err
			}

			if err := c.reports(ctx, vaultSynced(), vaultReady); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a closed vault", all(c.vault(v1alpha1.GateClosed, "Observe"), c.settled))
		}},
		{Title: "Nobody opens or deletes it by hand", Run: func(ctx context.Context) error {
			if err := c.opens(ctx); !apierrors.IsInvalid(err) || !mentions(err.Error(), "only Kausality moves the gate") {
				return fmt.Errorf("opening by hand: %w", errors.Join(err, world.ErrOther))
			}

			u, err := c.part(ctx, vaultKind(), "vault")
			if err != nil {
				return err
			}

			forged := world.Merge(`{"metadata": {"annotations": {"kausality.io/allowances": "- {relation: External, mutations: [Update], generation: 9}"}}}`)
			if err := c.Patch(ctx, u, forged); !apierrors.IsForbidden(err) || !mentions(err.Error(), "only Kausality writes annotation") {
				return fmt.Errorf("forging an allowance: %w", errors.Join(err, world.ErrOther))
			}

			return c.undeletable(ctx)
		}},
		{Title: "It stays gated when its owner goes and it must not", Run: func(ctx context.Context) error {
			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			if err := c.Delete(ctx, xr); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the end of the bank", func(ctx context.Context) error {
				if _, err := c.xr(ctx); !apierrors.IsNotFound(err) {
					return errors.Join(err, world.ErrOther)
				}

				return nil
			}); err != nil {
				return err
			}

			if err := still(ctx, all(c.vault(v1alpha1.GateClosed, "Observe"), watches(vaultKind(), true))); err != nil {
				return err
			}

			if err := running.Process("kausality-manager").Restart(ctx); err != nil {
				return err
			}

			if err := still(ctx, all(c.vault(v1alpha1.GateClosed, "Observe"), c.undeletable)); err != nil {
				return err
			}

			return watches(vaultKind(), true)(ctx)
		}},
		{Title: "Who may delete it does, and nothing is watched any more", Run: c.endOfBanks},
	})
}

// endOfBanks has hans delete a vault that was left, and takes the Composition
// away.
func (c cluster) endOfBanks(ctx context.Context) error {
	const policy = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: vault-deletion}
spec:
  match: {apiGroup: old.example.org, kind: Vault, fields: [delete]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{relation: External, mutations: [Delete]}]
`

	if err := c.apply(ctx, admin, policy); err != nil {
		return err
	}

	as, err := c.as(hans)
	if err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "the end of the vault", func(ctx context.Context) error {
		u, err := c.part(ctx, vaultKind(), "vault")
		if errors.Is(err, world.ErrOther) {
			return nil
		}

		return errors.Join(err, client.IgnoreNotFound(as.Delete(ctx, u)), world.ErrOther)
	}); err != nil {
		return err
	}

	for gvk, name := range map[schema.GroupVersionKind]string{
		{Group: "kausality.io", Version: "v1alpha1", Kind: "AllowancePolicy"}:                      "vault-deletion",
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}:                 "banks",
		{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}: "banks.shop.example.org",
	} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetName(name)

		if err := c.Delete(ctx, u); err != nil {
			return err
		}
	}

	return scenario.Eventually(ctx, "the end of the watches", all(watches(vaultKind(), false), watches(c.kind, false)))
}
