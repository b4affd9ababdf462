// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func TestAWindowIsInForceOnlyWhileItsPodsRunTheImage(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-window-pods", "deny")
	node := world.NewKubelet(t, running, l.namespace)
	as, task := controller(t, worker), l.made(t, "task")

	w := newUpgrade(t.Context(), t, l.cluster, "pods-v2", l.windowOfTasks(
		`activateWhen: {image: "registry.example.org/engine:v2", podSelector: {namespace: `+l.namespace+`, labels: {app: engine}}}`))

	pod := func(name, version string, do func(context.Context, client.Object) error) check {
		return func(ctx context.Context) error {
			return do(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name, Labels: map[string]string{"app": "engine"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "proxy", Image: "proxy"}, {Name: "engine", Image: "registry.example.org/engine:" + version},
				}},
			})
		}
	}
	start := func(ctx context.Context, obj client.Object) error { return l.Create(ctx, obj) }
	end := func(ctx context.Context, obj client.Object) error { return l.Delete(ctx, obj) }
	ready := func(ctx context.Context) error {
		node.Allow(1)

		return scenario.Eventually(ctx, "a ready pod", node.AllReady)
	}
	nothing := func(context.Context) error { return nil }

	for _, step := range []struct {
		title  string
		do     check
		active bool
		reason string
	}{
		{"Before there is a pod", nothing, false, v1alpha1.ReasonNoPods},
		{"A pod of the old version", pod("old", "v1", start), false, v1alpha1.ReasonPodRunsAnotherImage},
		{"It is ready", ready, false, v1alpha1.ReasonPodRunsAnotherImage},
		{"One of the new version beside it", pod("new", "v2", start), false, v1alpha1.ReasonPodRunsAnotherImage},
		{"The old one goes", pod("old", "v1", end), false, v1alpha1.ReasonPodNotReady},
		{"The new one is ready", ready, true, v1alpha1.ReasonActive},
		{"A change passes", resize(as, task, "large"), true, v1alpha1.ReasonActive},
		{"It is traced, and counted", func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a use", all(w.used(1), l.allowedBy(task, "pods-v2"), w.events("Started")))
		}, true, v1alpha1.ReasonActive},
		{"A pod of the old version comes back", pod("old", "v1", start), false, v1alpha1.ReasonPodRunsAnotherImage},
		{"It goes", pod("old", "v1", end), true, v1alpha1.ReasonActive},
		{"One of the new version that is not ready", pod("newer", "v2", start), false, v1alpha1.ReasonPodNotReady},
		{"It is ready", ready, true, v1alpha1.ReasonActive},
		{"The window ends", w.end, false, v1alpha1.ReasonEnded},
	} {
		if err := scenario.Eventually(t.Context(), step.title, step.do); err != nil {
			t.Fatal(err)
		}

		if err := scenario.Eventually(t.Context(), "then", all(w.is(step.active, step.reason), l.passes(as, task, step.active))); err != nil {
			t.Fatalf("%s: %v (node: %v)", step.title, err, node.Err())
		}
	}

	if err := scenario.Eventually(t.Context(), "events", all(w.used(1),
		w.events("Started", "Paused", "Resumed", "Paused", "Resumed", "Ended"))); err != nil {
		t.Error(err)
	}
}

func TestAWindowIsInForceOnlyOnceItsControllerIsThatFar(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-window-controller", "deny")
	as, task := controller(t, worker), l.made(t, "task")

	w := newUpgrade(t.Context(), t, l.cluster, "controller-2", l.windowOfTasks(
		`activateWhen: {controllerRef: {kind: Deployment, namespace: `+l.namespace+`, name: engine, minGeneration: 2}}`))

	engine := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "engine"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "engine"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "engine"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "engine", Image: "engine:v1"}}},
			},
		},
	}

	for _, step := range []struct {
		title  string
		do     check
		active bool
		reason string
	}{
		{"Before there is one", func(context.Context) error { return nil }, false, v1alpha1.ReasonControllerNotFound},
		{"It is made", func(ctx context.Context) error { return l.Create(ctx, engine.DeepCopy()) }, false, v1alpha1.ReasonControllerBehind},
		{"It gets another template", func(ctx context.Context) error {
			return l.Patch(ctx, engine.DeepCopy(), world.Merge(`{"spec": {"template": {"metadata": {"labels": {"version": "v2"}}}}}`))
		}, true, v1alpha1.ReasonActive},
		{"A change passes", resize(as, task, "large"), true, v1alpha1.ReasonActive},
		{"It is traced, and counted", func(ctx context.Context) error {
			return scenario.Eventually(ctx, "a use", all(w.used(1), l.allowedBy(task, "controller-2"), w.events("Started")))
		}, true, v1alpha1.ReasonActive},
		{"It is deleted", func(ctx context.Context) error { return l.Delete(ctx, engine.DeepCopy()) }, false, v1alpha1.ReasonControllerNotFound},
		{"Another generation is asked for that was there long ago", func(ctx context.Context) error {
			again := engine.DeepCopy()
			if err := l.Create(ctx, again); err != nil {
				return err
			}

			return w.Patch(ctx, w.object(), world.Merge(`{"spec": {"activateWhen": {"controllerRef": {"minGeneration": 1}}}}`))
		}, true, v1alpha1.ReasonActive},
	} {
		if err := scenario.Eventually(t.Context(), step.title, step.do); err != nil {
			t.Fatal(err)
		}

		if err := scenario.Eventually(t.Context(), "then", all(w.is(step.active, step.reason), l.passes(as, task, step.active))); err != nil {
			t.Fatalf("%s: %v", step.title, err)
		}
	}

	if err := scenario.Eventually(t.Context(), "events", w.events("Started", "Paused", "Resumed")); err != nil {
		t.Error(err)
	}
}

func TestTheChangesThatAWindowAllowsAreCounted(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-window-uses", "deny")
	as, task := controller(t, worker), l.made(t, "task")
	w := newUpgrade(t.Context(), t, l.cluster, "uses", l.windowOfTasks(""))
	ctx := t.Context()

	fleet := l.object("Fleet", "fleet", map[string]any{"ships": map[string]any{"count": int64(1)}})
	fleet.SetOwnerReferences(task.GetOwnerReferences())

	if err := asManager(t).Create(ctx, fleet); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a window", all(w.is(true, v1alpha1.ReasonActive), l.passes(as, task, true))); err != nil {
		t.Fatal(err)
	}

	// Dry runs, and what is refused, are no uses.
	if err := as.Patch(ctx, task.DeepCopy(), world.Merge(`{"spec": {"size": "dry"}}`), client.DryRunAll); err != nil {
		t.Error(err)
	}

	if err := as.Patch(ctx, task.DeepCopy(), world.Merge(`{"spec": {"shape": "round"}, "metadata": {"labels": {"a": "b"}}}`)); !apierrors.IsForbidden(err) {
		t.Errorf("another field: %v", err)
	}

	made, named := l.task("made"), l.task("")
	named.SetGenerateName("named-")

	want := int64(0)

	for _, do := range []error{
		resize(as, task, "1")(ctx), as.Create(ctx, made), as.Create(ctx, named), as.Delete(ctx, made),
		as.SubResource("scale").Update(ctx, fleet.DeepCopy(), client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}})),
		as.Apply(ctx, client.ApplyConfigurationFromUnstructured(l.task("applied")), client.FieldOwner("worker")),
	} {
		if do != nil {
			t.Error(do)
		}

		want++
	}

	if err := scenario.Eventually(ctx, "uses", w.used(want)); err != nil {
		t.Fatal(err)
	}

	// Each write would wake every XR that requires the window. Its condition Ready may come later than the uses.
	var was *v1alpha1.UpgradeAllowance

	if err := scenario.Eventually(ctx, "condition Ready", func(ctx context.Context) (err error) {
		if was, err = w.typed(ctx); err == nil && !meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.ConditionReady) {
			err = world.ErrOther
		}

		return err
	}); err != nil {
		t.Fatal(err)
	}

	if err := still(ctx, func(ctx context.Context) error {
		got, err := w.typed(ctx)
		if err == nil && got.ResourceVersion != was.ResourceVersion {
			err = fmt.Errorf("the window is written to: %+v: %w", got.Status, world.ErrOther)
		}

		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestAWindowIsReportedOnceThoughTheManagerIsKilled(t *testing.T) {
	world.Long(t)

	l := newLab(t, "lab-window-restart", "deny")
	as, task := controller(t, worker), l.made(t, "task")
	w := newUpgrade(t.Context(), t, l.cluster, "restart", l.windowOfTasks(""))
	ctx := t.Context()

	if err := scenario.Eventually(ctx, "a window", all(w.is(true, v1alpha1.ReasonActive), l.passes(as, task, true))); err != nil {
		t.Fatal(err)
	}

	if err := resize(as, task, "large")(ctx); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a use", all(w.used(1), w.events("Started"))); err != nil {
		t.Fatal(err)
	}

	manager := running.Process("kausality-manager")
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}

	// It ends while nobody looks.
	if err := w.end(ctx); err != nil {
		t.Fatal(err)
	}

	time.Sleep(3 * time.Second) // Of which it takes two.

	if err := manager.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "the end", all(w.is(false, v1alpha1.ReasonEnded),
		w.events("Started", "Ended"), l.passes(as, task, false))); err != nil {
		t.Fatal(err)
	}
}
