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

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// scale has the Deployment scaled by hans, and by an autoscaler, which updates
// what it has read.
func (d deployment) scale(autoscaler client.Client) check {
	return func(ctx context.Context) error {
		if _, err := d.kubectl(ctx, hans, "scale", "deployment/web", "--replicas=4"); err != nil {
			return err
		}

		if err := d.scaled(ctx, "v2", 4, hansName); err != nil {
			return err
		}

		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			u, err := d.live(ctx)
			if err != nil {
				return err
			}

			s := &autoscalingv1.Scale{}
			if err := autoscaler.SubResource("scale").Get(ctx, u, s); err != nil {
				return err
			}

			s.Spec.Replicas = 5

			return autoscaler.SubResource("scale").Update(ctx, u, client.WithSubResourceBody(s))
		}); err != nil {
			return err
		}

		return errors.Join(d.scaled(ctx, "v2", 5, podAutoscaler), d.hasPodDueTo(ctx, podAutoscaler))
	}
}

// hasPodDueTo checks that one Pod was made because somebody scaled.
func (d deployment) hasPodDueTo(ctx context.Context, who string) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}

	n := 0

	for _, p := range pods {
		if e, err := traceOf(&p, "create"); err == nil && e.Initiator == who && len(e.Trace) == 3 && e.Trace[0].Field == fieldReplicas {
			n++
		}
	}

	if n != 1 {
		return fmt.Errorf("%d Pods are due to %s: %w", n, who, world.ErrOther)
	}

	return nil
}

// scaled waits until there are so many Pods, because somebody scaled.
func (d deployment) scaled(ctx context.Context, version string, replicas int, who string) error {
	if err := scenario.Eventually(ctx, fmt.Sprintf("%d replicas", replicas), d.rolledOut(version, replicas)); err != nil {
		return err
	}

	rs, err := d.newest(ctx)
	if err != nil {
		return err
	}

	return d.dueTo(rs, fieldReplicas, who, fieldReplicas)
}

// scaleByOthers has anna scale, which is stored and not followed, and hans then.
func (d deployment) scaleByOthers(ctx context.Context) error {
	was, err := d.sizes(ctx)
	if err != nil {
		return err
	}

	out, err := d.kubectl(ctx, anna, "scale", "deployment/web", "--replicas=2")
	if err != nil {
		return err
	}

	err = errors.Join(
		says(out, "Warning", fieldReplicas, "will not be applied", `policy "rollout-scale"`, "anna@example.com"),
		still(ctx, all(d.unmoved(was), d.stored(func(u *appsv1.Deployment) bool { return *u.Spec.Replicas == 2 }))),
	)

	if _, err := d.kubectl(ctx, hans, "scale", "deployment/web", "--replicas=3"); err != nil {
		return err
	}

	return errors.Join(err, d.scaled(ctx, "v2", 3, hansName))
}

// stored checks the Deployment itself.
func (d deployment) stored(is func(*appsv1.Deployment) bool) check {
	return func(ctx context.Context) error {
		u, err := d.live(ctx)
		if err == nil && !is(u) {
			err = fmt.Errorf("the Deployment's spec is %+v: %w", u.Spec, world.ErrOther)
		}

		return err
	}
}

// editByOthers has anna change the image, which is stored and not followed, also
// when hans scales, and hans then.
func (d deployment) editByOthers(ctx context.Context) error {
	was, err := d.sizes(ctx)
	if err != nil {
		return err
	}

	out, err := d.kubectl(ctx, anna, "set", "image", "deployment/web", "app="+image("bad"))
	if err != nil {
		return err
	}

	err = errors.Join(
		says(out, "Warning", fieldImage, "will not be applied", `policy "rollout-template"`, "anna@example.com"),
		still(ctx, all(d.unmoved(was), d.stored(func(u *appsv1.Deployment) bool {
			return u.Spec.Template.Spec.Containers[0].Image == image("bad")
		}))),
		d.stuck(ctx),
	)

	// What may follow when hans scales is no more than that.
	if _, err := d.kubectl(ctx, hans, "scale", "deployment/web", "--replicas=4"); err != nil {
		return err
	}

	was[image("v2")] = 4
	err = errors.Join(err, scenario.Eventually(ctx, "another replica", d.unmoved(was)), still(ctx, d.unmoved(was)))

	if _, err := d.kubectl(ctx, hans, "set", "image", "deployment/web", "app="+image("v3")); err != nil {
		return err
	}

	return errors.Join(err, scenario.Eventually(ctx, "the next image", d.rolledOut("v3", 4)))
}

// stuck checks that the Deployment says why it does not progress.
func (d deployment) stuck(ctx context.Context) error {
	u, err := d.live(ctx)
	if err != nil {
		return err
	}

	for _, c := range u.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			return says(c.Message, "change not allowed", `policy "rollout-template"`)
		}
	}

	return fmt.Errorf("it says nothing: %+v: %w", u.Status.Conditions, world.ErrOther)
}

// rollBack goes back to the revision before last. What was refused in between may
// have a revision as well: the controller that tried again had perhaps not seen
// yet that somebody had asked for something else.
func (d deployment) rollBack(ctx context.Context) error {
	before, err := d.replicaSets(ctx)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(before, func(rs appsv1.ReplicaSet) bool {
		return rs.Spec.Template.Spec.Containers[0].Image == image("v2")
	})
	if i < 0 {
		return fmt.Errorf("no ReplicaSet has image v2: %w", world.ErrOther)
	}

	// 1. What kubectl writes has the annotations of the old ReplicaSet too.
	out, err := d.kubectl(ctx, hans, "rollout", "undo", "deployment/web", "--to-revision="+before[i].Annotations[annotationRevision])
	if err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "the image before", d.rolledOut("v2", 4)); err != nil {
		return err
	}

	// 2. Nothing was made anew.
	now, err := d.newest(ctx)
	if err != nil {
		return err
	}

	known := slices.ContainsFunc(before, func(rs appsv1.ReplicaSet) bool { return rs.UID == now.UID })
	if !known || strings.Contains(out, "Warning") {
		return fmt.Errorf("ReplicaSet %q was there before: %t; kubectl says %q: %w", now.Name, known, out, world.ErrOther)
	}

	// 3. Why, down to the Pods.
	return d.rolledOutBy(ctx, hansName, fieldImage)
}

// forget rolls out once more, so that there are more old revisions than the
// Deployment is to remember.
func (d deployment) forget(ctx context.Context) error {
	if _, err := d.kubectl(ctx, hans, "set", "image", "deployment/web", "app="+image("v4")); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "two old revisions", all(d.rolledOut("v4", 4), func(ctx context.Context) error {
		list, err := d.replicaSets(ctx)
		if err == nil && len(list) != 3 {
			err = fmt.Errorf("there are %d ReplicaSets: %w", len(list), world.ErrOther)
		}

		return err
	}))
}
