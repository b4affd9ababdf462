// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// heal has hans delete a Pod; another comes in its place.
func (d deployment) heal(ctx context.Context) error {
	before, err := d.pods(ctx)
	if err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, hans, "delete", "pod", before[0].Name, "--wait=false"); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "another Pod", d.rolledOut("v4", len(before))); err != nil {
		return err
	}

	after, err := d.pods(ctx)
	if err != nil {
		return err
	}

	for _, p := range after {
		if slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == p.UID }) {
			continue
		}

		e, err := traceOf(&p, "create")
		if err != nil {
			return err
		}

		if e.Initiator != replicaSetController {
			return fmt.Errorf("the trace of Pod %q says %+v: %w", p.Name, e, world.ErrOther)
		}
	}

	return nil
}

// keepFromOthers has anna delete what is not hers to delete.
func (d deployment) keepFromOthers(ctx context.Context) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}

	var errs []error

	for _, what := range []string{"deployment/" + d.name, "pod/" + pods[0].Name} {
		out, err := d.kubectl(ctx, anna, "delete", what, "--dry-run=server")
		if err == nil {
			err = fmt.Errorf("anna may delete %s: %w", what, world.ErrOther)
		} else {
			err = says(out, "Forbidden", "change not allowed: delete", "anna@example.com")
		}

		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// end has hans delete the Deployment.
func (d deployment) end(ctx context.Context) error {
	if _, err := d.kubectl(ctx, hans, "delete", "deployment", d.name, "--cascade=background"); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "the end of all", d.ended)
}

// endLast makes a small Deployment, and has hans delete it so that it is the
// last to end: meanwhile it says who wanted that.
func (d deployment) endLast(ctx context.Context) error {
	if err := d.buildUp(ctx, 2); err != nil {
		return err
	}

	d.node.Stop()
	defer d.node.Start()

	if _, err := d.kubectl(ctx, hans, "delete", "deployment", d.name, "--cascade=foreground", "--wait=false"); err != nil {
		return err
	}

	err := scenario.Eventually(ctx, "Pods that end", func(ctx context.Context) error {
		pods, err := d.pods(ctx)
		if err == nil && (len(pods) != 2 || pods[0].DeletionTimestamp == nil || pods[1].DeletionTimestamp == nil) {
			err = fmt.Errorf("there are %d Pods: %w", len(pods), world.ErrOther)
		}

		return err
	})

	err = errors.Join(err, d.endDueTo(ctx, hansName))

	d.node.Start()

	return errors.Join(err, scenario.Eventually(ctx, "the end of all", d.ended))
}

// endDueTo checks that the trace of a Deployment that ends says who deleted it.
func (d deployment) endDueTo(ctx context.Context, who string) error {
	u, err := d.live(ctx)
	if err != nil {
		return err
	}

	e, err := traceOf(u, "delete")
	if err == nil && (e.Initiator != who || u.DeletionTimestamp == nil) {
		err = fmt.Errorf("deleted at %v, the trace says %+v: %w", u.DeletionTimestamp, e, world.ErrOther)
	}

	return err
}

// orphan makes a small Deployment, and has hans delete it without what it has.
func (d deployment) orphan(ctx context.Context) error {
	if err := d.buildUp(ctx, 2); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, hans, "delete", "deployment", d.name, "--cascade=orphan"); err != nil {
		return err
	}

	free := func(ctx context.Context) error {
		rs, err := d.newest(ctx)
		if err != nil {
			return err
		}

		if ref := metav1.GetControllerOf(rs); ref != nil || rs.DeletionTimestamp != nil || rs.Status.ReadyReplicas != 2 {
			return fmt.Errorf("the ReplicaSet has parent %v and %d ready Pods: %w", ref, rs.Status.ReadyReplicas, world.ErrOther)
		}

		return nil
	}

	if err := scenario.Eventually(ctx, "an orphan", free); err != nil {
		return err
	}

	return still(ctx, free)
}

// endNamespace deletes the namespace as the administrator may, whom no policy
// names.
func (d deployment) endNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}}
	if err := d.Delete(ctx, ns); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "the end of the namespace", func(ctx context.Context) error {
		err := d.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return fmt.Errorf("it is there: %+v: %w", ns.Status.Conditions, errors.Join(err, world.ErrOther))
	})
}

// interrupt kills the manager in the middle of a rollout, for a while.
func (d deployment) interrupt(ctx context.Context) error {
	manager := running.Process("kausality-manager")

	if _, err := d.kubectl(ctx, hans, "set", "image", "deployment/web", "app="+image("v2")); err != nil {
		return err
	}

	d.node.Allow(2)

	if err := scenario.Eventually(ctx, "half of it", d.progressed("v2", 2)); err != nil {
		return err
	}

	if err := manager.Kill(); err != nil {
		return err
	}

	// 1. What is refused with nobody there to ask is tried again.
	d.node.Allow(world.AllPods)

	was, err := d.sizes(ctx)
	stopped := errors.Join(err, still(ctx, d.unmoved(was)))

	// 2. It goes on from where it was.
	if err := manager.Restart(ctx); err != nil {
		return err
	}

	if err := scenario.Eventually(ctx, "all of it", d.rolledOut("v2", 4)); err != nil {
		return err
	}

	return errors.Join(stopped, d.rolledOutBy(ctx, hansName, fieldImage))
}
