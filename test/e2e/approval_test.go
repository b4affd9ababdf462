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
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// approver is somebody who decides about what is held.
type approver struct {
	client.Client

	name string
}

// approverNamed is somebody who may make ChangeApprovals, and has rights to approve, each as
// VERB GROUP RESOURCE.
func approverNamed(t *testing.T, name string, rights ...[3]string) approver {
	t.Helper()

	return approverIn(t, namespace, name, rights...)
}

// approverIn is somebody who has them in another namespace.
func approverIn(t *testing.T, namespace, name string, rights ...[3]string) approver {
	t.Helper()

	a := world.NewApprover(t, running, namespace, name, rights...)

	return approver{Client: a.Client, name: a.Name}
}

// decide makes a ChangeApproval of some of the changes that are listed.
func (a approver) decide(
	ctx context.Context, p pendings, name string, decision v1alpha1.ApprovalDecision, which func(v1alpha1.HeldChange) bool,
) error {
	pch, err := p.get(ctx)
	if err != nil {
		return err
	}

	return world.Approver{Client: a.Client, Name: a.name}.Decide(ctx, pch, name, decision, which)
}

// approve makes one that is admitted.
func (a approver) approve(ctx context.Context, p pendings, name string, which func(v1alpha1.HeldChange) bool) error {
	return scenario.Eventually(ctx, "an approval", func(ctx context.Context) error {
		return a.decide(ctx, p, name, v1alpha1.DecisionApprove, which)
	})
}

func every(v1alpha1.HeldChange) bool { return true }

// ofKind are the changes of objects of a kind.
func ofKind(kind string) func(v1alpha1.HeldChange) bool {
	return func(e v1alpha1.HeldChange) bool { return e.Ref.Kind == kind }
}

// becomes checks in which state all changes of a ChangeApproval are.
func (p pendings) becomes(name string, state v1alpha1.ApprovalState) check {
	return func(ctx context.Context) error {
		cha := &v1alpha1.ChangeApproval{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: p.root.Namespace, Name: name}, cha); err != nil {
			return err
		}

		if len(cha.Status.Changes) == 0 || slices.ContainsFunc(cha.Status.Changes, func(d v1alpha1.ChangeDecision) bool { return d.State != state }) {
			return fmt.Errorf("ChangeApproval %q is %+v, not %s: %w", name, cha.Status.Changes, state, world.ErrOther)
		}

		return nil
	}
}

// finished checks that nothing is held or under way, and that what was approved is made.
func (p pendings) finished(ctx context.Context) error {
	pch, err := p.get(ctx)
	if err != nil {
		return err
	}

	for _, c := range []string{v1alpha1.ConditionApproved, v1alpha1.ConditionApplied} {
		if !meta.IsStatusConditionTrue(pch.Status.Conditions, c) {
			return fmt.Errorf("%s: %+v: %w", c, pch.Status, world.ErrOther)
		}
	}

	return nil
}

// TestWhatIsHeldIsApprovedAsItWasSeen once, by who may, from what a new Composition asks for to
// the external object.
func TestWhatIsHeldIsApprovedAsItWasSeen(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	const composition = "approvals"

	c := newCluster(t, "Store", "approval")
	p := pendingsOf(t, "shop.example.org/v1", "Store", namespace, c.name)
	objects, notes := [3]string{v1alpha1.VerbApprove, "kubernetes.m.crossplane.io", "objects"}, [3]string{v1alpha1.VerbApprove, "", "configmaps"}
	berta, clara := approverNamed(t, "approval-berta", objects, notes), approverNamed(t, "approval-clara", objects)
	destroyer := approverNamed(t, "approval-dora", objects, notes, [3]string{v1alpha1.VerbApproveDestructive, "kubernetes.m.crossplane.io", "objects"})
	// Who edits the store may approve, but nothing of what they ask for; breaking the glass takes a
	// right of its own.
	editor := approverNamed(t, annaName, objects, notes,
		[3]string{v1alpha1.VerbBreakGlass, "kubernetes.m.crossplane.io", "objects"}, [3]string{v1alpha1.VerbBreakGlass, "", "configmaps"})

	c.play(t, []scenario.Step{
		{Title: "A store is made, and a new version of its Composition is held", Run: func(ctx context.Context) error {
			if err := errors.Join(c.applyFile(ctx, "stores.yaml"), c.apply(ctx, admin, storeComposition(composition, "v1", "data")),
				c.apply(ctx, hans, storeOf(composition, c.name, "small"))); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled)); err != nil {
				return err
			}

			if err := c.apply(ctx, admin, storeComposition(composition, "v2", "data")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list", p.lists(nil,
				held{kind: "Object", field: "spec.forProvider.manifest.data.version", to: "v2"}, held{kind: "ConfigMap", field: "data.version", to: "v2"}))
		}},
		{Title: "The condition says how to approve it", Run: func(ctx context.Context) error {
			// Crossplane may run the pipeline once more with the XR that its cache has, of before.
			return scenario.Eventually(ctx, "a command", c.says(". kubectl kausality pending store.shop.example.org/approval"))
		}},
		{Title: "Who has no right to approve one of them is refused", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a refusal", func(ctx context.Context) error {
				err := clara.decide(ctx, p, "clara", v1alpha1.DecisionApprove, every)
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `may not approve changes of ConfigMap`) {
					return fmt.Errorf("%w: %w", err, world.ErrOther)
				}

				return nil
			})
		}},
		{Title: "What is rejected is held, whoever approves it", Run: func(ctx context.Context) error {
			if err := scenario.Eventually(ctx, "a rejection", func(ctx context.Context) error {
				return clara.decide(ctx, p, "no", v1alpha1.DecisionReject, ofKind("Object"))
			}); err != nil {
				return err
			}

			if err := berta.approve(ctx, p, "in-vain", ofKind("Object")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a rejection", all(
				p.becomes("no", v1alpha1.ApprovalStateRejected), p.becomes("in-vain", v1alpha1.ApprovalStateRejected), c.says("2 changes held")))
		}},
		{Title: "Once that is withdrawn the approval counts, through ten renderings, and for its change alone", Run: func(ctx context.Context) error {
			for i := range 10 {
				xr, err := c.xr(ctx)
				if err != nil {
					return err
				}

				if err := c.Patch(ctx, xr, world.Merge(fmt.Sprintf(`{"metadata": {"annotations": {"example.org/again": "%d"}}}`, i))); err != nil {
					return err
				}
			}

			if err := clara.Delete(ctx, &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "no"}}); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the new version outside", all(
				c.shows("version", "v2", "data"), p.becomes("in-vain", v1alpha1.ApprovalStateApplied), c.spent, c.says("1 change held", " of ConfigMap"),
				p.lists(nil, held{kind: "ConfigMap", field: "data.version", to: "v2"})))
		}},
		{Title: "The object says who approved it, and why", Run: func(ctx context.Context) error {
			live, err := c.parts(ctx, objectKind())
			if err != nil {
				return err
			}

			trace := resource.Annotation(live["data"], v1alpha1.AnnotationTrace)
			for _, part := range []string{"initiator: approval-berta", "kind: ChangeApproval", "name: in-vain", "reason: CHG-in-vain"} {
				if !strings.Contains(trace, part) {
					return fmt.Errorf("%q is not in %s: %w", part, trace, world.ErrOther)
				}
			}

			return nil
		}},
		{Title: "The rest is approved, and it is over", Run: func(ctx context.Context) error {
			if err := berta.approve(ctx, p, "rest", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the end", all(p.becomes("rest", v1alpha1.ApprovalStateApplied), p.finished, c.settled, c.spent))
		}},
		{Title: "Nobody approves what they ask for", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, anna, storeOf(composition, c.name, "huge")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists([]string{annaName}, held{kind: "Object", to: "huge"}, held{kind: "ConfigMap", to: "huge"})); err != nil {
				return err
			}

			err := editor.decide(ctx, p, "own", v1alpha1.DecisionApprove, every)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "requested the change and cannot approve it") {
				return fmt.Errorf("%w: %w", err, world.ErrOther)
			}

			return nil
		}},
		{Title: "Somebody else does, and the edit is forgotten", Run: func(ctx context.Context) error {
			if err := berta.approve(ctx, p, "edit", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a huge store", all(c.shows("size", "huge", "data"), p.finished, c.settled, c.spent, func(ctx context.Context) error {
				xr, err := c.xr(ctx)
				if err == nil && resource.Annotation(xr, v1alpha1.AnnotationHeld) != "" {
					err = world.ErrOther
				}

				return err
			}))
		}},
		{Title: "What was approved once is held when it is asked for once more", Run: func(ctx context.Context) error {
			// Hans may put it back, and Anna asks for the same again.
			if err := c.apply(ctx, hans, storeOf(composition, c.name, "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a small store", all(c.shows("size", "small", "data"), c.settled)); err != nil {
				return err
			}

			if err := c.apply(ctx, anna, storeOf(composition, c.name, "huge")); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a hold", all(c.says("2 changes held"), c.shows("size", "small", "data"),
				p.lists([]string{annaName}, held{kind: "Object", to: "huge"}, held{kind: "ConfigMap", to: "huge"})))
		}},
		{Title: "A ChangeApproval of that name that is applied again grants nothing", Run: func(ctx context.Context) error {
			cha := &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edit"}}
			if err := berta.Delete(ctx, cha); err != nil {
				return err
			}

			if err := berta.approve(ctx, p, "edit", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "nothing", all(p.becomes("edit", v1alpha1.ApprovalStateSuperseded), c.shows("size", "small", "data"), c.says("2 changes held")))
		}},
		{Title: "What is taken back is not approved any more", Run: func(ctx context.Context) error {
			pch, err := p.get(ctx)
			if err != nil {
				return err
			}

			if err := c.apply(ctx, anna, storeOf(composition, c.name, "small")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "no held change", all(c.settled, p.lists(nil))); err != nil {
				return err
			}

			late := &v1alpha1.ChangeApproval{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"},
				Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: pch.Name, Changes: []string{pch.Status.Changes[0].Digest}},
			}
			if err := berta.Create(ctx, late); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "nothing", all(p.becomes("late", v1alpha1.ApprovalStateSuperseded), c.settled, c.spent))
		}},
		{Title: "What destroys something takes another right", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, admin, storeComposition(composition, "v2", "queue")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists(nil,
				held{kind: "Object", part: "queue", field: v1alpha1.MutationCreate, created: true},
				held{kind: "Object", part: "data", field: v1alpha1.MutationDelete, destroys: true})); err != nil {
				return err
			}

			err := berta.decide(ctx, p, "destroy", v1alpha1.DecisionApprove, every)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not approve-destructive") {
				return fmt.Errorf("%w: %w", err, world.ErrOther)
			}

			return nil
		}},
		{Title: "What is approved is made, and deleted with what is outside", Run: func(ctx context.Context) error {
			if err := destroyer.approve(ctx, p, "replace", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a queue in the place of data", all(
				c.shows("version", "v2", "queue"), p.becomes("replace", v1alpha1.ApprovalStateApplied), p.finished, c.settled, c.spent,
				func(ctx context.Context) error {
					if _, err := c.configMap(ctx, c.name+"-data"); !apierrors.IsNotFound(err) {
						return fmt.Errorf("the external object is there (%w): %w", err, world.ErrOther)
					}

					return nil
				}))
		}},
		{Title: "What was approved is remembered on the store", Run: func(ctx context.Context) error {
			xr, err := c.xr(ctx)
			if err != nil {
				return err
			}

			list, err := allowance.ParseApproved(xr)
			if err != nil {
				return err
			}

			for _, name := range []string{"in-vain", "rest", "edit", "replace"} {
				if !slices.ContainsFunc(list, func(a v1alpha1.ApprovedChange) bool { return a.Approval == name }) {
					return fmt.Errorf("%s is not among %+v: %w", name, list, world.ErrOther)
				}
			}

			return nil
		}},
		{Title: "What somebody has rejected is held, and nobody else withdraws that", Run: func(ctx context.Context) error {
			if err := c.apply(ctx, anna, storeOf(composition, c.name, "huge")); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", p.lists([]string{annaName}, held{kind: "Object", to: "huge"}, held{kind: "ConfigMap", to: "huge"})); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a rejection", func(ctx context.Context) error {
				return clara.decide(ctx, p, "never", v1alpha1.DecisionReject, ofKind("Object"))
			}); err != nil {
				return err
			}

			err := berta.Delete(ctx, &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "never"}})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `which "`+clara.name+`" has made`) {
				return fmt.Errorf("%w: %w", err, world.ErrOther)
			}

			return scenario.Eventually(ctx, "a rejection that stands", all(p.becomes("never", v1alpha1.ApprovalStateRejected), c.shows("size", "small", "queue")))
		}},
		{Title: "Who may break the glass lets it through alone, though they ask for it themselves", Run: func(ctx context.Context) error {
			if err := scenario.Eventually(ctx, "a broken glass", func(ctx context.Context) error {
				return editor.decide(ctx, p, "emergency", v1alpha1.DecisionBreakGlass, every)
			}); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a huge store", all(
				c.shows("size", "huge", "queue"), p.becomes("emergency", v1alpha1.ApprovalStateApplied), p.finished, c.settled, c.spent))
		}},
		{Title: "Everybody is told of it", Run: func(ctx context.Context) error {
			return scenario.Eventually(ctx, "an event, and a trace", func(ctx context.Context) error {
				live, err := c.parts(ctx, objectKind())
				if err != nil {
					return err
				}

				trace := resource.Annotation(live["queue"], v1alpha1.AnnotationTrace)
				for _, part := range []string{"initiator: " + annaName, "name: emergency", "decision: BreakGlass", "reason: CHG-emergency"} {
					if !strings.Contains(trace, part) {
						return fmt.Errorf("%q is not in %s: %w", part, trace, world.ErrOther)
					}
				}

				xr, err := c.xr(ctx)
				if err != nil {
					return err
				}

				return c.told(xr, string(v1alpha1.EventReasonBreakGlass))(ctx)
			})
		}},
	})
}

// TestWhatAClaimAsksForIsApproved one level after the other: the XR by the approval, and what
// follows from it as policies say.
func TestWhatAClaimAsksForIsApproved(t *testing.T) {
	t.Parallel()

	c := newClaimed(t, "approved-database")
	ctx := t.Context()

	if err := scenario.Eventually(ctx, "a database that was ready", all(c.ready, c.builtUp)); err != nil {
		t.Fatal(err)
	}

	if err := c.apply(ctx, anna, fmt.Sprintf(`{apiVersion: example.org/v1alpha1, kind: DatabaseClaim,
		metadata: {name: %s, namespace: default}, spec: {size: medium}}`, c.name)); err != nil {
		t.Fatal(err)
	}

	p := pendingsOf(t, "example.org/v1alpha1", "DatabaseClaim", namespace, c.name)
	if err := scenario.Eventually(ctx, "a list, and a Claim that names it", all(
		p.lists([]string{annaName}, held{
			kind: "XDatabase", field: "spec.size", to: "medium", parent: "DatabaseClaim", cause: v1alpha1.CauseEdit, user: annaName,
		}),
		c.names("1 change held: spec.size of XDatabase ", " (small → medium)"))); err != nil {
		t.Fatal(err)
	}

	claim, err := c.claim(ctx)
	if err != nil {
		t.Fatal(err)
	}

	if err := p.ownedBy(ctx, claim); err != nil {
		t.Error(err)
	}

	berta := approverNamed(t, "approved-berta", [3]string{v1alpha1.VerbApprove, "example.org", "xdatabases"})
	if err := berta.approve(ctx, p, "claimed", every); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a medium XR", all(p.becomes("claimed", v1alpha1.ApprovalStateApplied), p.finished, func(ctx context.Context) error {
		xr, _, err := c.below(ctx)
		if err == nil && resource.String(xr.Object, "spec", "size") != "medium" {
			err = world.ErrOther
		}

		return err
	})); err != nil {
		t.Fatal(err)
	}

	// So it does where the function holds what follows from an edit that is allowed.
	if err := c.apply(ctx, hans, fmt.Sprintf(`{apiVersion: example.org/v1alpha1, kind: DatabaseClaim,
		metadata: {name: %s, namespace: default, annotations: {jira: INFRA-2}}, spec: {size: medium, engine: mysql}}`, c.name)); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "another list, and a Claim that names it", c.names(
		"1 change held: data.engine of Object ", " (postgres → mysql)")); err != nil {
		t.Error(err)
	}
}

// names checks that the condition of the Claim has some words, and the command that lists what waits at it.
func (c claimed) names(words ...string) check {
	return func(ctx context.Context) error {
		claim, err := c.claim(ctx)
		if err != nil {
			return err
		}

		got, _ := resource.ConditionOf(claim, v1alpha1.ConditionKausality)

		for _, w := range append(words, ". kubectl kausality pending databaseclaim.example.org/"+c.name+" -n "+namespace) {
			if !strings.Contains(got.Message, w) {
				return fmt.Errorf("the condition of the Claim says %q, not %q: %w", got.Message, w, world.ErrOther)
			}
		}

		return nil
	}
}
