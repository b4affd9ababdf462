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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestARefusedRolloutIsApprovedOnce and goes to its end: people approve the edit, for what is made of it
// is many writes, and nothing of these is stored.
func TestARefusedRolloutIsApprovedOnce(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	const (
		replicas = 10
		berta    = "rollout-berta"
	)

	d := newDeployment(t, "rollout-approved", "web")
	p := pendingsOf(t, "apps/v1", "Deployment", d.namespace, d.name)
	deployments := [3]string{v1alpha1.VerbApprove, "apps", "deployments"}
	approver, editor := approverIn(t, d.namespace, berta, deployments), approverIn(t, d.namespace, annaName, deployments)
	controller := impersonate(t, deploymentController)

	var seen map[string]int32

	edits := func(ctx context.Context, version string) error {
		_, err := d.kubectl(ctx, anna, "set", "image", "deployment/web", "app="+image(version))

		return err
	}
	waits := func(version string) check {
		return p.lists([]string{annaName}, held{
			kind: "Deployment", parent: "Deployment", field: fieldImage, to: image(version), cause: v1alpha1.CauseEdit, user: annaName,
		})
	}

	d.play(t, []scenario.Step{
		{Title: "A Deployment is built up under Enforcements that deny", Run: func(ctx context.Context) (err error) {
			if err := errors.Join(d.govern(impersonate(t, replicaSetController))(ctx), d.enforced(ctx), d.buildUp(ctx, replicas)); err != nil {
				return err
			}

			d.node.Allow(world.AllPods)
			seen, err = d.sizes(ctx)

			return err
		}},
		{Title: "The rollout of an edit is refused, and the edit listed", Run: func(ctx context.Context) error {
			if err := edits(ctx, "v2"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list", all(waits("v2"), d.unmoved(seen), p.refused("ReplicaSet", v1alpha1.MutationCreate)))
		}},
		{Title: "Who made it does not approve it", Run: func(ctx context.Context) error {
			if err := editor.decide(ctx, p, "own", v1alpha1.DecisionApprove, every); !apierrors.IsForbidden(err) {
				return fmt.Errorf("%w: %w", err, world.ErrOther)
			}

			return nil
		}},
		{Title: "Another value is not what was approved", Run: func(ctx context.Context) error {
			pch, err := p.get(ctx)
			if err != nil {
				return err
			}

			if err := edits(ctx, "bad"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", waits("bad")); err != nil {
				return err
			}

			cha := &v1alpha1.ChangeApproval{
				ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "of-v2"},
				Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: pch.Name, Changes: []string{pch.Status.Changes[0].Digest}},
			}
			if err := approver.Create(ctx, cha); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "nothing", p.becomes("of-v2", v1alpha1.ApprovalStateSuperseded)); err != nil {
				return err
			}

			return still(ctx, d.unmoved(seen))
		}},
		{Title: "It is approved once, and goes to its end", Run: func(ctx context.Context) error {
			if err := edits(ctx, "v3"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", waits("v3")); err != nil {
				return err
			}

			if err := approver.approve(ctx, p, "of-v3", every); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "the new image", all(
				d.rolledOut("v3", replicas), p.becomes("of-v3", v1alpha1.ApprovalStateApplied), p.finished, p.refused("", "")))
		}},
		{Title: "Its ReplicaSet says who approved it, and who asked for it", Run: func(ctx context.Context) error {
			rs, err := d.newest(ctx)
			if err != nil {
				return err
			}

			e, err := traceOf(rs, fieldReplicas)
			if err != nil {
				return err
			}

			if e.Initiator != berta || len(e.Trace) != 3 || e.Trace[0].Kind != "ChangeApproval" || e.Trace[1].Field != fieldImage {
				return fmt.Errorf("the trace of ReplicaSet %q says %+v: %w", rs.Name, e, world.ErrOther)
			}

			made := rs.Annotations[v1alpha1.AnnotationTrace]
			for _, part := range []string{"kind: ChangeApproval", "name: of-v3", "requester: " + annaName, "reason: CHG-of-v3"} {
				if !strings.Contains(made, part) {
					return fmt.Errorf("%q is not in %s: %w", part, made, world.ErrOther)
				}
			}

			return nil
		}},
		{Title: "Nothing else follows from it", Run: all(
			d.refuses(controller, `{"spec":{"replicas":9}}`, "spec.replicas", `policy "rollout-`),
			d.refuses(controller, `{"spec":{"minReadySeconds":9}}`, "spec.minReadySeconds", "add an AllowancePolicy"),
		)},
		{Title: "The next edit waits again, and goes when it is taken back", Run: func(ctx context.Context) (err error) {
			if seen, err = d.sizes(ctx); err != nil {
				return err
			}

			if err := edits(ctx, "v4"); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "a list", all(waits("v4"), d.unmoved(seen))); err != nil {
				return err
			}

			if err := edits(ctx, "v3"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "no held change", all(p.lists(nil), p.refused("", ""), d.rolledOut("v3", replicas)))
		}},
		{Title: "The namespace ends with what is left in it", Run: d.endNamespace},
	})
}

// refused checks that a write is listed that was refused to a controller; of no kind, that none is.
func (p pendings) refused(kind, field string) check {
	return func(ctx context.Context) error {
		pch, err := p.get(ctx)
		if err != nil {
			return err
		}

		listed := slices.ContainsFunc(pch.Status.Refused, func(r v1alpha1.RefusedChange) bool {
			return r.Ref.Kind == kind && r.Field == field && r.User == deploymentController && r.Message != ""
		})
		if kind == "" && len(pch.Status.Refused) > 0 || kind != "" && !listed {
			return fmt.Errorf("refused are %+v: %w", pch.Status.Refused, world.ErrOther)
		}

		return nil
	}
}
