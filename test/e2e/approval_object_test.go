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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func configMapKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
}

// TestACreationWithoutANameIsApprovedByItsPlace in the Composition, for nobody knows the name before
// Crossplane has generated it.
func TestACreationWithoutANameIsApprovedByItsPlace(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	s := newStocked(t, "exact-creation")
	berta := approverNamed(t, "exact-creation-berta", approvesStores()...)
	dora := approverNamed(t, "exact-creation-dora", [3]string{v1alpha1.VerbApproveDestructive, "kubernetes.m.crossplane.io", "objects"})

	creates := func(part string) held {
		return held{kind: "Object", part: part, field: v1alpha1.MutationCreate, created: true}
	}

	var queue string

	s.play(t, []scenario.Step{
		{Title: "Two parts that are new are held, and have no names", Run: func(ctx context.Context) error {
			if err := errors.Join(s.made(ctx, "data"), s.composed(ctx, "v1", "data", "queue", "cache")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", s.pending.lists(nil, creates("queue"), creates("cache"))); err != nil {
				return err
			}

			e, err := s.pending.entry(ctx, creates("queue"))
			if err == nil && (e.Ref.Name != "" || e.Ref.UID != "") {
				err = fmt.Errorf("%+v has a name: %w", e.Ref, world.ErrOther)
			}

			queue = e.Digest

			return err
		}},
		{Title: "One is approved, and is made under the name that it gets, and the other is not", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, s.pending, "exact-creation", queue); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a queue", all(s.shows("version", "v1", "data", "queue"),
				s.pending.becomes("exact-creation", v1alpha1.ApprovalStateApplied), s.spent, s.pending.lists(nil, creates("cache")))); err != nil {
				return err
			}

			u, err := s.part(ctx, objectKind(), "queue")
			if err == nil && !strings.HasPrefix(u.GetName(), s.name+"-") {
				err = fmt.Errorf("its name is %q: %w", u.GetName(), world.ErrOther)
			}

			return errors.Join(err, still(ctx, s.gone("cache")))
		}},
		{Title: "It is not made once more, once it was taken away", Run: func(ctx context.Context) error {
			deletes := held{kind: "Object", part: "queue", field: v1alpha1.MutationDelete, destroys: true}

			if err := s.composed(ctx, "v1", "data", "cache"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", s.pending.lists(nil, deletes, creates("cache"))); err != nil {
				return err
			}

			deletion, err := s.pending.digest(ctx, deletes)
			if err != nil {
				return err
			}

			if err := dora.approveExactly(ctx, s.pending, "exact-deletion", deletion); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "no queue", all(s.gone("queue"), s.pending.becomes("exact-deletion", v1alpha1.ApprovalStateApplied), s.spent)); err != nil {
				return err
			}

			if err := s.composed(ctx, "v1", "data", "queue", "cache"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", s.pending.lists(nil, creates("queue"), creates("cache"))); err != nil {
				return err
			}

			again, err := s.pending.digest(ctx, creates("queue"))
			if err == nil && again != queue {
				err = fmt.Errorf("it is another change: %w", world.ErrOther)
			}

			return errors.Join(err, still(ctx, all(s.gone("queue"), s.gone("cache"), s.carries(0), s.pending.becomes("exact-creation", v1alpha1.ApprovalStateApplied))))
		}},
	})
}

// restored makes an object anew as it was, as a backup is restored: with another UID.
func (c cluster) restored(ctx context.Context, u *unstructured.Unstructured) error {
	made := u.DeepCopy()
	made.SetUID("")
	made.SetResourceVersion("")
	made.SetManagedFields(nil)
	made.SetCreationTimestamp(metav1.Time{})

	if err := c.Delete(ctx, u); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "an object that is restored", func(ctx context.Context) error { return c.Create(ctx, made.DeepCopy()) })
}

// TestAnApprovalIsNotForAnotherObjectOfTheName which is there since it was seen.
func TestAnApprovalIsNotForAnotherObjectOfTheName(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	s := newStocked(t, "exact-object")
	berta := approverNamed(t, "exact-object-berta", approvesStores()...)
	ofNote := held{kind: "ConfigMap", field: noteVersion, to: "v2"}

	var object, note, restored string

	s.play(t, []scenario.Step{
		{Title: "A new version of the Composition is held, and approved while Crossplane does nothing", Run: func(ctx context.Context) (err error) {
			if err := s.made(ctx, "data"); err != nil {
				return err
			}

			if object, note, err = s.upgraded(ctx, "v2"); err != nil {
				return err
			}

			if err := s.halted(ctx); err != nil {
				return err
			}

			if err := berta.approveExactly(ctx, s.pending, "exact-object-old", note); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a grant", all(s.carries(1), s.pending.decided("exact-object-old", note, v1alpha1.ApprovalStateGranted)))
		}},
		{Title: "Restored with another UID, the object is not what was approved", Run: func(ctx context.Context) error {
			u, err := s.part(ctx, configMapKind(), "note")
			if err != nil {
				return err
			}

			if err := errors.Join(s.restored(ctx, u), s.resumed(ctx)); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "nothing", all(s.spent,
				s.pending.decided("exact-object-old", note, v1alpha1.ApprovalStateSuperseded, "the change is no longer desired"),
				s.pending.lists(nil, held{kind: "Object", field: objectVersion, to: "v2"}, ofNote), func(ctx context.Context) error {
					// The list may be that of before until the pipeline has run.
					if restored, err = s.pending.digest(ctx, ofNote); err == nil && restored == note {
						err = fmt.Errorf("the digest is that of the object of before: %w", world.ErrOther)
					}

					return err
				})); err != nil {
				return err
			}

			return errors.Join(err, still(ctx, all(s.note("version", "v1"), s.note("size", "small"))))
		}},
		{Title: "Nor is it for an approval that comes later", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, s.pending, "exact-object-late", note); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "nothing", s.pending.decided("exact-object-late", note, v1alpha1.ApprovalStateSuperseded,
				"no held change had this digest")); err != nil {
				return err
			}

			return still(ctx, all(s.note("version", "v1"), s.carries(0)))
		}},
		{Title: "Its own approval is", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, s.pending, "exact-object-new", restored); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a new version", all(s.note("version", "v2"), s.shows("version", "v1", "data"), s.spent,
				s.pending.decided("exact-object-new", restored, v1alpha1.ApprovalStateApplied)))
		}},
		{Title: "Of a store that is made anew nothing was approved", Run: func(ctx context.Context) error {
			// The approval of the object waits for Crossplane when the store goes.
			if err := s.halted(ctx); err != nil {
				return err
			}

			if err := berta.approveExactly(ctx, s.pending, "exact-object-gone", object); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a grant", s.carries(1)); err != nil {
				return err
			}

			xr, err := s.xr(ctx)
			if err != nil {
				return err
			}

			if err := errors.Join(s.remove(ctx, hans, xr, metav1.DeletePropagationBackground), s.composed(ctx, "v1", "data"), s.resumed(ctx)); err != nil {
				return err
			}

			// What it composed goes a moment later, and what is outside, where a policy of another test lets stores be
			// deleted: neither is to be taken for what the new one has.
			if err := rests(ctx, "the end of the store", all(s.ended, s.noteless, s.leftOrGone("data"))); err != nil {
				return err
			}

			if err := s.made(ctx, "data"); err != nil {
				return err
			}

			again, _, err := s.upgraded(ctx, "v2")
			if err == nil && again == object {
				err = fmt.Errorf("the digest is that of the object of before: %w", world.ErrOther)
			}

			if err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "nothing", s.pending.decided("exact-object-gone", object, v1alpha1.ApprovalStateSuperseded)); err != nil {
				return err
			}

			return still(ctx, all(s.shows("version", "v1", "data"), s.note("version", "v1"), s.carries(0), s.says("2 changes held")))
		}},
	})
}

// noteless checks that the ConfigMap that was composed is gone.
func (c cluster) noteless(ctx context.Context) error {
	live, err := c.parts(ctx, configMapKind())
	if err == nil && live["note"] != nil {
		err = fmt.Errorf("the note is still there: %w", world.ErrOther)
	}

	return err
}

// leftOrGone checks that a managed resource is gone with its external object, or that both are left
// for good: nothing deletes them, and its gate is closed.
func (c cluster) leftOrGone(name string) check {
	return func(ctx context.Context) error {
		live, err := c.parts(ctx, objectKind())
		if err != nil {
			return err
		}

		u, ok := live[name]
		if !ok {
			return c.gone(name)(ctx)
		}

		rec, err := allowance.ParseGate(u)
		if err == nil && (rec == nil || rec.State != v1alpha1.GateClosed || resource.Deleting(u)) {
			err = fmt.Errorf("%q is about to go: %w", name, world.ErrOther)
		}

		return err
	}
}
