// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// rolledOut checks that all Pods there are to be are ready, of a version of the
// image, and that there are no others.
func (d deployment) rolledOut(version string, replicas int) check {
	return func(ctx context.Context) error {
		u, err := d.live(ctx)
		if err != nil {
			return err
		}

		want := int32(replicas)
		if s := u.Status; s.ObservedGeneration != u.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("of %d replicas at generation %d the status says %+v: %w", want, u.Generation, s, world.ErrOther)
		}

		pods, err := d.pods(ctx)
		if err != nil {
			return err
		}

		for _, p := range pods {
			if p.DeletionTimestamp != nil || p.Spec.Containers[0].Image != image(version) {
				return fmt.Errorf("Pod %q runs %s, deleted at %v: %w", p.Name, p.Spec.Containers[0].Image, p.DeletionTimestamp, world.ErrOther)
			}
		}

		if len(pods) != replicas {
			return fmt.Errorf("there are %d Pods, want %d: %w", len(pods), replicas, world.ErrOther)
		}

		return nil
	}
}

// progressed checks that so many Pods of the newest ReplicaSet are ready.
func (d deployment) progressed(version string, pods int) check {
	return func(ctx context.Context) error {
		rs, err := d.newest(ctx)
		if err != nil {
			return err
		}

		if got := rs.Spec.Template.Spec.Containers[0].Image; got != image(version) || int(rs.Status.ReadyReplicas) != pods {
			return fmt.Errorf("%d Pods of %s are ready, want %d of %s: %w", rs.Status.ReadyReplicas, got, pods, version, world.ErrOther)
		}

		return nil
	}
}

// observed checks that the Deployment controller has seen all of the spec.
func (d deployment) observed(ctx context.Context) error {
	u, err := d.live(ctx)
	if err == nil && u.Status.ObservedGeneration != u.Generation {
		err = fmt.Errorf("generation %d is observed of %d: %w", u.Status.ObservedGeneration, u.Generation, world.ErrOther)
	}

	return err
}

// sizes are the replicas that ReplicaSets are to have, by image.
func (d deployment) sizes(ctx context.Context) (map[string]int32, error) {
	list, err := d.replicaSets(ctx)
	out := map[string]int32{}

	for _, rs := range list {
		out[rs.Spec.Template.Spec.Containers[0].Image] = *rs.Spec.Replicas
	}

	return out, err
}

// unmoved checks that ReplicaSets are as they were.
func (d deployment) unmoved(was map[string]int32) check {
	return func(ctx context.Context) error {
		is, err := d.sizes(ctx)
		if err == nil && !maps.Equal(is, was) {
			err = fmt.Errorf("the ReplicaSets are %v, were %v: %w", is, was, world.ErrOther)
		}

		return err
	}
}

// dueTo checks that the trace of a ReplicaSet says that somebody changed a field
// of the Deployment, and that this changed a field of the ReplicaSet. No field
// of it means whichever was changed last.
func (d deployment) dueTo(rs *appsv1.ReplicaSet, field, who, cause string) error {
	e, err := traceOf(rs, field)
	if err != nil {
		return err
	}

	if e.Initiator != who || len(e.Trace) != 2 || e.Trace[0].Kind != "Deployment" || e.Trace[0].Name != d.name || e.Trace[0].Field != cause ||
		e.Trace[1].Kind != "ReplicaSet" || e.Trace[1].Name != rs.Name {
		return fmt.Errorf("the trace of ReplicaSet %q says %+v, not that %s changed %s: %w", rs.Name, e, who, cause, world.ErrOther)
	}

	return nil
}

// podsDueTo checks the same of the making of all Pods of a ReplicaSet.
func (d deployment) podsDueTo(ctx context.Context, rs *appsv1.ReplicaSet, who, cause string) error {
	pods := &corev1.PodList{}
	if err := d.List(ctx, pods, client.InNamespace(d.namespace), client.MatchingLabels(rs.Spec.Selector.MatchLabels)); err != nil {
		return err
	}

	for _, p := range pods.Items {
		e, err := traceOf(&p, "create")
		if err != nil {
			return err
		}

		if e.Initiator != who || len(e.Trace) != 3 || e.Trace[0].Field != cause || e.Trace[1].Name != rs.Name || e.Trace[2].Kind != "Pod" {
			return fmt.Errorf("the trace of Pod %q says %+v, not that %s changed %s: %w", p.Name, e, who, cause, world.ErrOther)
		}
	}

	return nil
}

// refuses checks that the Deployment controller may not change a field of the
// newest ReplicaSet now, and what it is given.
func (d deployment) refuses(controller client.Client, patch string, words ...string) check {
	return func(ctx context.Context) error {
		rs, err := d.newest(ctx)
		if err != nil {
			return err
		}

		err = controller.Patch(ctx, rs, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		if err == nil {
			return fmt.Errorf("ReplicaSet %q takes %s: %w", rs.Name, patch, world.ErrOther)
		}

		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("it is not forbidden: %w", err)
		}

		return says(err.Error(), words...)
	}
}

// says checks that a text has some words in it.
func says(text string, words ...string) error {
	var errs []error

	for _, w := range words {
		if !strings.Contains(text, w) {
			errs = append(errs, fmt.Errorf("%q is not said: %w", w, world.ErrOther))
		}
	}

	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\nin: %s", err, text)
	}

	return nil
}

// ended checks that nothing is left of the Deployment.
func (d deployment) ended(ctx context.Context) error {
	if _, err := d.live(ctx); err == nil || !apierrors.IsNotFound(err) {
		return fmt.Errorf("Deployment %q is there: %w", d.name, errors.Join(err, world.ErrOther))
	}

	sets, err := d.replicaSets(ctx)
	if err != nil {
		return err
	}

	pods, err := d.pods(ctx)
	if err == nil && len(sets)+len(pods) > 0 {
		err = fmt.Errorf("%d ReplicaSets and %d Pods of %q are left: %w", len(sets), len(pods), d.name, world.ErrOther)
	}

	return err
}
