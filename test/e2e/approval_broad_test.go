// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// broadFields is how many fields the parts of a Broad have, all together.
const broadFields = 5 * 201

// broad is a Broad of a size.
func broad(size int) string {
	return fmt.Sprintf("{apiVersion: shop.example.org/v1, kind: Broad, metadata: {name: broad, namespace: default}, spec: {size: %d}}", size)
}

// fieldsOf counts the fields of the parts of a Broad that have a size.
func (c cluster) fieldsOf(ctx context.Context, size string) (int, error) {
	live, err := c.parts(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		return 0, err
	}

	n := 0

	for _, u := range live {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		for _, v := range data {
			if strings.TrimLeft(v, "0") == size {
				n++
			}
		}
	}

	return n, nil
}

// haveSize checks how many fields of the parts of a Broad have a size.
func (c cluster) haveSize(size string, want int) check {
	return func(ctx context.Context) error {
		got, err := c.fieldsOf(ctx, size)
		if err == nil && got != want {
			err = fmt.Errorf("%d fields have size %s, want %d: %w", got, size, want, world.ErrOther)
		}

		return err
	}
}

// counts checks how many changes wait, that some of them are listed, and that neither the condition by
// which they are told nor what people read of them is longer than it may be.
func (c cluster) counts(p pendings, want int) check {
	return func(ctx context.Context) error {
		xr, err := c.xr(ctx)
		if err != nil {
			return err
		}

		list, _ := resource.ConditionOf(xr, v1alpha1.ConditionState)
		text, _ := resource.ConditionOf(xr, v1alpha1.ConditionKausality)

		pch, err := p.get(ctx)
		if err != nil {
			return err
		}

		listed := len(pch.Status.Changes)
		if int(pch.Status.Total) != want || listed < min(want, 20) || listed > v1alpha1.MaxPendingChanges ||
			len(list.Message) > v1alpha1.MaxStateBytes || len(text.Message) > v1alpha1.MaxStateBytes {
			return fmt.Errorf("%d changes wait, want %d; %d are listed; the conditions have %d and %d bytes: %w",
				pch.Status.Total, want, listed, len(list.Message), len(text.Message), world.ErrOther)
		}

		return nil
	}
}

// TestHoweverMuchIsHeldItIsHeld: what does not fit into the list is counted, and what is listed can be
// approved, without anything else.
func TestHoweverMuchIsHeldItIsHeld(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	c := newCluster(t, "Broad", "broad")
	p := pendingsOf(t, "shop.example.org/v1", "Broad", namespace, c.name)
	berta := approverNamed(t, "broad-berta", [3]string{v1alpha1.VerbApprove, "", "configmaps"})
	listed := 0

	c.play(t, []scenario.Step{
		{Title: "Some thousand fields are made", Run: func(ctx context.Context) error {
			if err := c.applyFile(ctx, "broad.yaml"); err != nil {
				return err
			}

			if err := c.apply(ctx, hans, broad(1)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "broad parts", all(c.haveSize("1", broadFields), c.settled))
		}},
		{Title: "All of them are held", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, anna, broad(2)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list", all(c.says(fmt.Sprintf("%d changes held", broadFields)), c.counts(p, broadFields), c.haveSize("1", broadFields)))
		}},
		{Title: "What nobody sees is not approved with the rest", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a refusal", func(ctx context.Context) error {
				err := berta.decide(ctx, p, "all", v1alpha1.DecisionApprove, func(v1alpha1.HeldChange) bool { return false })
				if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
					return fmt.Errorf("%w: %w", err, world.ErrOther)
				}

				t.Logf("refused: %v", err)

				return nil
			})
		}},
		{Title: "What is listed is approved, and nothing else is made", Run: func(ctx context.Context) error {
			if err := berta.approve(ctx, p, "listed", every); err != nil {
				return err
			}

			cha := &v1alpha1.ChangeApproval{}
			if err := p.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "listed"}, cha); err != nil {
				return err
			}

			listed = len(cha.Spec.Changes)
			t.Logf("%d of %d changes are listed", listed, broadFields)

			return scenario.Eventually(ctx, "what was approved", all(
				p.becomes("listed", v1alpha1.ApprovalStateApplied), c.haveSize("2", listed), c.haveSize("1", broadFields-listed), c.counts(p, broadFields-listed)))
		}},
		{Title: "It is over once the rest is taken back", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, hans, broad(1)); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "narrow parts", all(c.haveSize("1", broadFields), c.settled, p.lists(nil)))
		}},
	})
}
