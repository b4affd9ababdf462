// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
	"github.com/kausality-io/kausality-crossplane/webhook"
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
			return scenario.Eventually(ctx, "a use", all(w.used(1), l.allowedBy(task, "pods-v2"), w.events("Started", "Used")))
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
		w.events("Started", "Used", "Paused", "Resumed", "Paused", "Resumed", "Ended"))); err != nil {
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
			return scenario.Eventually(ctx, "a use", all(w.used(1), l.allowedBy(task, "controller-2"), w.events("Started", "Used")))
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

	if err := scenario.Eventually(t.Context(), "events", w.events("Started", "Used", "Paused", "Resumed")); err != nil {
		t.Error(err)
	}
}

func TestAWindowCountsEachStoredChangeOnce(t *testing.T) {
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

	// Somebody else writes the task meanwhile, so that many a request is decided
	// more than once before it is stored: so often each time that it still is.
	busy, done := context.WithCancel(ctx)
	defer done()

	var (
		others sync.WaitGroup
		left   atomic.Int64
	)

	for n := range 2 {
		others.Go(func() {
			for i := 0; busy.Err() == nil; i++ {
				time.Sleep(2 * time.Millisecond)

				if left.Add(-1) < 0 {
					continue
				}

				_ = l.Status().Patch(busy, task.DeepCopy(), world.Merge(fmt.Sprintf(`{"status": {"writer%d": %d}}`, n, i))) // Often too late.
			}
		})
	}

	want := int64(0)

	for i := range 12 {
		left.Store(40)

		if err := resize(as, task, strconv.Itoa(i))(ctx); err != nil {
			t.Fatal(err)
		}

		want++

		if err := as.Patch(ctx, task.DeepCopy(), world.Merge(`{"spec": {"size": "dry"}}`), client.DryRunAll); err != nil {
			t.Error(err)
		}

		if err := as.Patch(ctx, task.DeepCopy(), world.Merge(`{"spec": {"shape": "round"}, "metadata": {"labels": {"a": "b"}}}`)); !apierrors.IsForbidden(err) {
			t.Errorf("another field: %v", err)
		}

		stale := task.DeepCopy()
		_ = unstructured.SetNestedField(stale.Object, "stale", "spec", "size") // It is a map.

		if err := as.Update(ctx, stale); !apierrors.IsConflict(err) {
			t.Errorf("a stale update: %v", err)
		}
	}

	done()
	others.Wait()

	// The other verbs.
	made, named := l.task("made"), l.task("")
	named.SetGenerateName("named-")

	for _, do := range []error{
		as.Create(ctx, made), as.Create(ctx, named), as.Delete(ctx, made),
		as.SubResource("scale").Update(ctx, fleet.DeepCopy(), client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}})),
		as.Apply(ctx, client.ApplyConfigurationFromUnstructured(l.task("applied")), client.FieldOwner("worker")),
	} {
		if do != nil {
			t.Error(do)
		}

		want++
	}

	if err := as.Create(ctx, l.task("task")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("one that is there: %v", err)
	}

	if err := scenario.Eventually(ctx, "uses", w.used(want)); err != nil {
		t.Fatal(err)
	}

	if err := still(ctx, w.used(want)); err != nil {
		t.Error(err)
	}

	if err := scenario.Eventually(ctx, "events", w.events("Started", "Used")); err != nil {
		t.Error(err)
	}

	// Each write wakes every XR that requires the window.
	if err := w.stored(0)(ctx); err != nil {
		t.Error(err)
	}

	if err := w.end(ctx); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "the count", w.stored(want)); err != nil {
		t.Error(err)
	}
}

func TestReplicasCountTheUsesOfAWindowTogether(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-window-replicas", "none")
	w := newUpgrade(t.Context(), t, l.cluster, "replicas", l.windowOfTasks(""))

	live, err := w.typed(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	key := upgradeallowance.Key{Name: live.Name, UID: live.UID}
	ctx, stop := context.WithCancel(t.Context())

	var replicas sync.WaitGroup

	start := func(ctx context.Context) *webhook.Uses {
		c, err := client.NewWithWatch(running.Config(), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}

		uses := webhook.NewUses(c, client.ObjectKey{Namespace: stack.KausalityNamespace, Name: "test-window-uses"}, logr.Discard())

		replicas.Go(func() {
			if err := uses.Start(ctx); err != nil {
				t.Error(err)
			}

			uses.Finish(context.WithoutCancel(ctx))
		})

		return uses
	}

	counters := make([]*webhook.Uses, 0, 4)

	for range cap(counters) {
		uses := start(ctx)
		counters = append(counters, uses)

		// Another window of that name was there before.
		uses.Count(upgradeallowance.Use{Windows: []upgradeallowance.Key{key, {Name: key.Name, UID: "another"}, {Name: "gone", UID: "gone"}}})

		for range 24 {
			uses.Count(upgradeallowance.Use{Windows: []upgradeallowance.Key{key}})
		}
	}

	// While the window goes on none writes to it, nor as it ends itself.
	if err := still(ctx, w.stored(0)); err != nil {
		t.Error(err)
	}

	for _, uses := range counters {
		uses.Count(upgradeallowance.Use{Windows: []upgradeallowance.Key{key}})
	}

	stop()
	replicas.Wait()

	if err := w.stored(0)(t.Context()); err != nil {
		t.Error(err)
	}

	// Who is there when it is over has what all have counted.
	if err := w.end(t.Context()); err != nil {
		t.Fatal(err)
	}

	ctx, stop = context.WithCancel(t.Context())
	start(ctx)

	if err := scenario.Eventually(t.Context(), "the count", w.stored(104)); err != nil {
		t.Error(err)
	}

	stop()
	replicas.Wait()
}

// TestAWindowIsReportedOnceThoughTheManagerIsKilled does not run beside others,
// for which the manager would be away too.
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

	if err := scenario.Eventually(ctx, "a use", all(w.used(1), w.events("Started", "Used"))); err != nil {
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
		w.events("Started", "Used", "Ended"), l.passes(as, task, false))); err != nil {
		t.Fatal(err)
	}
}
