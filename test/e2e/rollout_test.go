// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Fields of a Deployment that people change.
const (
	fieldImage    = "spec.template.spec.containers[0].image"
	fieldReplicas = "spec.replicas"
)

func TestARolloutGoesToItsEndAndNothingElseHappens(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	d := newDeployment(t, "rollout", "web")
	controller := impersonate(t, deploymentController)

	steps := []scenario.Step{
		{Title: "Policies are in force", Run: d.govern(impersonate(t, replicaSetController))},
		{Title: "Enforcements are in force", Run: d.enforced},
		{Title: "A Deployment is built up", Run: func(ctx context.Context) error { return d.buildUp(ctx, 10) }},
		{Title: "A change of the image is rolled out, with a pause half-way", Run: d.rollOut},
		{Title: "What was allowed is used up then", Run: all(
			d.refuses(controller, `{"spec":{"replicas":9}}`, "spec.replicas", `policy "rollout-`),
			d.refuses(controller, `{"spec":{"minReadySeconds":9}}`, "spec.minReadySeconds", "add an AllowancePolicy"),
		)},
		{Title: "A Pod that is not ready frees nothing", Run: d.stumble(controller)},
		{Title: "Who may scale does, by kubectl scale and as the HPA does", Run: d.scale(impersonate(t, podAutoscaler))},
		{Title: "Nothing follows when others scale", Run: d.scaleByOthers},
	}

	if !testing.Short() { // As world.Long has it: what follows is played by make test-all.
		steps = append(steps, d.later()...)
	}

	d.play(t, steps)
}

// later is what else becomes of a Deployment that was rolled out.
func (d deployment) later() []scenario.Step {
	return []scenario.Step{
		{Title: "Nothing follows when others change the image, until somebody does who may", Run: d.editByOthers},
		{Title: "Rolling back scales the old ReplicaSet up again", Run: d.rollBack},
		{Title: "Old revisions are forgotten", Run: d.forget},
		{Title: "A deleted Pod comes back", Run: d.heal},
		{Title: "Others delete neither the Deployment nor a Pod", Run: d.keepFromOthers},
		{Title: "A deleted Deployment ends with all it has", Run: d.end},
		{Title: "One that is to end last says who deleted it", Run: d.beside("last").endLast},
		{Title: "An orphaned ReplicaSet stays", Run: d.beside("orphan").orphan},
		{Title: "The namespace ends with what is left in it", Run: d.endNamespace},
	}
}

// TestARolloutOutlivesTheManager does not run beside others, for which the
// manager would be away too.
func TestARolloutOutlivesTheManager(t *testing.T) {
	world.Long(t)

	d := newDeployment(t, "rollout-restart", "web")

	d.play(t, []scenario.Step{
		{Title: "Policies are in force", Run: d.govern(impersonate(t, replicaSetController))},
		{Title: "A Deployment is built up", Run: func(ctx context.Context) error { return d.buildUp(ctx, 4) }},
		{Title: "A rollout stops while the manager is away, and then goes on", Run: d.interrupt},
		{Title: "The namespace ends with what is left in it", Run: d.endNamespace},
	})
}

// govern applies the policies and waits until the API server asks about Pods,
// which the last of them names.
func (d deployment) govern(probe client.Client) check {
	return func(ctx context.Context) error {
		if err := d.applyFile(ctx, "rollout.yaml"); err != nil {
			return err
		}

		return scenario.Eventually(ctx, "a stamp", func(ctx context.Context) error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "probe"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image("v1")}}},
			}
			if err := probe.Create(ctx, pod, client.DryRunAll); err != nil {
				return err
			}

			_, err := traceOf(pod, "create")

			return err
		})
	}
}

func (d deployment) enforced(ctx context.Context) error {
	for _, name := range []string{"rollout-children", "rollout-roots"} {
		if err := scenario.Eventually(ctx, "Enforcement "+name+" in force", func(ctx context.Context) error {
			u, err := d.get(ctx, v1alpha1.GroupVersion().WithKind("Enforcement"), name)
			if err == nil && !resource.Ready(u) {
				err = world.ErrOther
			}

			return err
		}); err != nil {
			return err
		}
	}

	return nil
}

func (d deployment) buildUp(ctx context.Context, replicas int) error {
	if err := d.apply(ctx, hans, d.manifest(replicas)); err != nil {
		return err
	}

	d.node.Allow(replicas)

	if err := scenario.Eventually(ctx, "a Deployment", d.rolledOut("v1", replicas)); err != nil {
		return err
	}

	rs, err := d.newest(ctx)
	if err != nil {
		return err
	}

	return errors.Join(d.dueTo(rs, "create", hansName, "create"), d.podsDueTo(ctx, rs, hansName, "create"))
}

func (d deployment) rollOut(ctx context.Context) error {
	if _, err := d.kubectl(ctx, hans, "set", "image", "deployment/web", "app="+image("v2")); err != nil {
		return err
	}

	d.node.Allow(4)

	if err := scenario.Eventually(ctx, "almost half of it", d.progressed("v2", 4)); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, hans, "rollout", "pause", "deployment/web"); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "the pause", d.observed); err != nil {
		return err
	}

	was, err := d.sizes(ctx)
	if err != nil {
		return err
	}

	d.node.Allow(world.AllPods)

	if err := still(ctx, d.unmoved(was)); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, hans, "rollout", "resume", "deployment/web"); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "all of it", d.rolledOut("v2", 10)); err != nil {
		return err
	}

	return d.rolledOutBy(ctx, hansName, fieldImage)
}

// rolledOutBy checks that all ReplicaSets, and the Pods of the newest, are as
// they are because somebody changed a field.
func (d deployment) rolledOutBy(ctx context.Context, who, field string) error {
	list, err := d.replicaSets(ctx)
	if err != nil {
		return err
	}

	for i := range list {
		if err := d.dueTo(&list[i], "", who, field); err != nil {
			return err
		}
	}

	return d.podsDueTo(ctx, &list[len(list)-1], who, field)
}

// stumble has a Pod of a Deployment that is rolled out get unready: that is not
// the rollout going on, nor the Deployment being built up.
func (d deployment) stumble(controller client.Client) check {
	return func(ctx context.Context) error {
		d.node.Hold()

		pods, err := d.pods(ctx)
		if err != nil {
			return err
		}

		if err := d.node.Report(ctx, &pods[0], corev1.ConditionFalse); err != nil {
			return err
		}

		if err := scenario.Eventually(ctx, "a Deployment that is not available", d.unavailable); err != nil {
			return err
		}

		refused := d.refuses(controller, `{"spec":{"replicas":9}}`, "spec.replicas", `policy "rollout-`)(ctx)

		d.node.Allow(world.AllPods)

		return errors.Join(refused, scenario.Eventually(ctx, "a ready Pod", d.rolledOut("v2", 10)))
	}
}

func (d deployment) unavailable(ctx context.Context) error {
	u, err := d.live(ctx)
	if err != nil {
		return err
	}

	for _, c := range u.Status.Conditions {
		if c.Status == corev1.ConditionFalse && string(c.Type) == resource.ConditionAvailable {
			return nil
		}
	}

	return fmt.Errorf("the conditions are %+v: %w", u.Status.Conditions, world.ErrOther)
}
