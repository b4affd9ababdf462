// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

var start = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// looking makes the windows' reconciler of a cluster with some windows, where pods are
// those given.
func looking(t *testing.T, funcs interceptor.Funcs, pods []string, texts ...string) (*Reconciler, client.Client) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.UpgradeAllowance{}).WithInterceptorFuncs(funcs)

	for _, u := range fixture.Documents[v1alpha1.UpgradeAllowance](t, texts...) {
		b = b.WithObjects(&u)
	}

	objects := make([]unstructured.Unstructured, 0, len(pods))
	for _, text := range pods {
		objects = append(objects, *fixture.Parse(t, text))
	}

	c := b.Build()
	w := &Reconciler{
		client: c, now: func() time.Time { return start },
		wake: make(chan event.TypedGenericEvent[string], 10),
	}
	w.targets = &targets{
		scheme: scheme, changed: w.enqueue, running: map[target]*targetWatch{},
		newCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, Objects: objects}, nil
		},
	}

	t.Cleanup(w.targets.stop)

	return w, c
}

// windowText is a window of some hours with more in its spec, as YAML.
func windowText(name, from, until, more string) string {
	return "{metadata: {name: " + name + ", uid: " + name + "}, spec: {serviceAccount: 'system:serviceaccount:a:b', validFrom: '" + from + "', validUntil: '" + until + "', " +
		"allow: [{kind: Task, mutations: [spec]}]" + more + "}}"
}

func TestAWindowIsInForceAsItsTimeAndWhatItWaitsForSay(t *testing.T) {
	const (
		pods  = ", activateWhen: {podSelector: {namespace: a, labels: {app: x}}}"
		owner = ", activateWhen: {controllerRef: {kind: Deployment, namespace: a, name: d}}"
		young = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, creationTimestamp: '2026-01-01T11:59:00Z', labels: {app: x}}, " +
			"status: {phase: Running, startTime: '2026-01-01T11:59:00Z', conditions: [{type: Ready, status: 'True'}]}}"
	)

	cases := map[string]struct {
		reason, text string
		pods         []string
		active       bool
		watching     int
		again        bool
	}{
		"Now":     {"Its time has come.", windowText("w", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", ""), nil, true, 0, true},
		"Later":   {"Its time is to come.", windowText("w", "2026-01-01T13:00:00Z", "2026-01-01T14:00:00Z", ""), nil, false, 0, true},
		"Over":    {"Its time is over.", windowText("w", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", ""), nil, false, 0, false},
		"NoPods":  {"What it waits for is not there, and is watched.", windowText("w", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", pods), nil, false, 1, true},
		"NoOwner": {"Nor is a workload.", windowText("w", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", owner), []string{young}, false, 1, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, c := looking(t, interceptor.Funcs{}, tc.pods, tc.text)

			got, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "w"}})
			if err != nil || (got.RequeueAfter > 0) != tc.again {
				t.Errorf("%s\nagain after %s; %v", tc.reason, got.RequeueAfter, err)
			}

			u := &v1alpha1.UpgradeAllowance{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "w"}, u); err != nil {
				t.Fatal(err)
			}

			if u.Status.Active != tc.active || len(w.targets.running) != tc.watching {
				t.Errorf("%s\nactive %v (%s), %d watches", tc.reason, u.Status.Active, u.Status.Reason, len(w.targets.running))
			}

			// Once it is gone nothing is watched for it.
			if err := c.Delete(t.Context(), u); err != nil {
				t.Fatal(err)
			}

			if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "w"}}); err != nil || len(w.targets.running) > 0 {
				t.Errorf("%s\ngone: %d watches, %v", tc.reason, len(w.targets.running), err)
			}
		})
	}
}

func TestAStatusThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		late   bool
	}{
		"Conflict": {"A conflict is to be tried again silently.", conflict(), true},
		"Refused":  {"Anything else is an error.", fixture.ErrRefused, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, _ := looking(t, interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return tc.err
				},
			}, nil, windowText("w", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", ""))

			got, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "w"}})
			if !errors.Is(err, tc.err) || object.Outdated(err) != tc.late || !got.IsZero() {
				t.Errorf("%s\nagain after %s; %v", tc.reason, got.RequeueAfter, err)
			}
		})
	}
}

func TestOneWatchServesAllWindowsThatDependOnTheSame(t *testing.T) {
	w, _ := looking(t, interceptor.Funcs{}, nil)
	on, other := target{gvk: ofPods(), namespace: "a", labels: "app=x"}, target{gvk: ofPods(), namespace: "a", labels: "app=y"}

	watching := func(want int, dependents ...string) {
		t.Helper()

		got := w.targets.dependents(on)
		slices.Sort(got)

		if diff := cmp.Diff(dependents, got); diff != "" || len(w.targets.running) != want {
			t.Errorf("%d watches, want %d; dependents, -want, +got:\n%s", len(w.targets.running), want, diff)
		}
	}

	for _, name := range []string{"a", "b"} {
		if _, known, err := w.targets.observe(t.Context(), name, on, start); err != nil || !known {
			t.Fatal(known, err)
		}
	}

	watching(1, "a", "b")

	// Both are reconciled when it changes, goes or comes.
	cached, ok := w.targets.running[on].cache.(*fixture.Cache)
	if !ok {
		t.Fatal("its cache is another one")
	}

	informer, err := cached.FakeInformerFor(t.Context(), object.New(on.gvk))
	if err != nil {
		t.Fatal(err)
	}

	pod := fixture.Parse(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, managedFields: []}, spec: {nodeName: n}}")
	informer.Add(pod)
	informer.Update(pod, pod)
	informer.Delete(pod)

	if n := len(w.wake); n != 6 {
		t.Errorf("%d looks, want 6", n)
	}

	if kept, err := trimTarget(pod); err != nil || kept == nil {
		t.Errorf("kept %v, %v", kept, err)
	}

	// What a window depends on may become another.
	if _, _, err := w.targets.observe(t.Context(), "a", other, start); err != nil {
		t.Fatal(err)
	}

	watching(2, "b")
	w.targets.release(t.Context(), "b")
	watching(1)
	w.targets.release(t.Context(), "a")
	watching(0)

	if _, _, err := w.targets.observe(t.Context(), "a", target{gvk: ofPods(), labels: "a b c"}, start); err == nil {
		t.Error("labels that are none can be watched")
	}
}

// TestAWindowStaysInForceUntilTheWatchOfItsPodsHasBegun in a manager that is another one since.
func TestAWindowStaysInForceUntilTheWatchOfItsPodsHasBegun(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, labels: {app: x}}, " +
		"spec: {containers: [{name: c, image: 'example.org/i:v2'}]}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}"

	w, c := looking(t, interceptor.Funcs{}, []string{pod}, windowText("w", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z",
		", activateWhen: {image: 'example.org/i:v2', podSelector: {namespace: a, labels: {app: x}}}"))
	now := start
	w.now = func() time.Time { return now }

	look := func(when string, active bool, again time.Duration) {
		t.Helper()

		got, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "w"}})
		if err != nil || got.RequeueAfter != again {
			t.Errorf("%s: again after %s, want %s; %v", when, got.RequeueAfter, again, err)
		}

		u := &v1alpha1.UpgradeAllowance{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "w"}, u); err != nil || u.Status.Active != active {
			t.Errorf("%s: active %t (%s), want %t; %v", when, u.Status.Active, u.Status.Reason, active, err)
		}
	}

	look("before", true, evaluateEvery)

	// The next manager knows no pods before its watch has begun.
	informer := controllertest.NewFakeInformer()
	cached := &fixture.Cache{FakeInformers: &informertest.FakeInformers{
		Scheme: w.targets.scheme, InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{ofPods(): informer},
	}}
	w.targets.stop()
	w.targets.newCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return cached, nil }

	look("at once", true, syncSoon)

	now = start.Add(syncPatience)
	look("in time", true, syncSoon)

	now = now.Add(syncSoon)
	look("too late", false, syncSoon)

	cached.Objects = []unstructured.Unstructured{*fixture.Parse(t, pod)}
	informer.Synced()
	look("begun", true, evaluateEvery)
}

func TestWindowsAreReconciledOnceTheirReadinessIsAnother(t *testing.T) {
	w, _ := looking(t, interceptor.Funcs{}, nil)
	list := fixture.Documents[v1alpha1.UpgradeAllowance](t,
		windowText("a", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", ""), windowText("b", "2026-01-01T11:00:00Z", "2026-01-01T13:00:00Z", ""))

	woken := func() []string {
		var out []string

		for {
			select {
			case e := <-w.wake:
				out = append(out, e.Object)
			default:
				return out
			}
		}
	}
	nothing := func(*v1alpha1.UpgradeAllowance) string { return "" }
	warning := []v1alpha1.TypeCheckingWarning{{Field: "spec.allow[0].mutations[0]", Warning: "there is no such field"}}

	for i, step := range []struct {
		missing  []kind.Name
		lacks    func(*v1alpha1.UpgradeAllowance) string
		warnings []v1alpha1.TypeCheckingWarning
		want     []string
		reason   string
	}{
		{nil, nothing, nil, []string{"a", "b"}, v1alpha1.ReasonInForce},
		{nil, nothing, nil, nil, v1alpha1.ReasonInForce},
		{[]kind.Name{{Kind: "Task"}}, nothing, nil, []string{"a", "b"}, v1alpha1.ReasonKindUnknown},
		{nil, func(*v1alpha1.UpgradeAllowance) string { return "get tasks" }, nil, []string{"a", "b"}, v1alpha1.ReasonRightsMissing},
		{nil, nothing, warning, []string{"a", "b"}, v1alpha1.ReasonInForce},
		{nil, nothing, warning, nil, v1alpha1.ReasonInForce},
	} {
		w.SetReadiness(t.Context(), list, step.missing, Checks{
			Lacks:        step.lacks,
			TypeChecking: func(*v1alpha1.UpgradeAllowance) []v1alpha1.TypeCheckingWarning { return step.warnings },
		})

		if diff := cmp.Diff(step.want, woken()); diff != "" {
			t.Errorf("step %d: looked at, -want, +got:\n%s", i, diff)
		}

		got, checked := w.says(&list[0])
		if got.Reason != step.reason || strings.Contains(got.Message, "mutations[0]: there is no such field") != (step.warnings != nil) {
			t.Errorf("step %d: %+v", i, got)
		}

		if diff := cmp.Diff(step.warnings, checked); diff != "" {
			t.Errorf("step %d: type checking, -want, +got:\n%s", i, diff)
		}
	}

	before := v1alpha1.UpgradeAllowance{ObjectMeta: metav1.ObjectMeta{UID: "c"}}
	meta.SetStatusCondition(&before.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Before"})

	if got, _ := w.says(&before); got == nil || got.Reason != "Before" {
		t.Errorf("of which nothing was said: %+v", got)
	}

	if _, err := w.controller(&informertest.FakeInformers{Scheme: w.targets.scheme}, logr.Discard()); err != nil {
		t.Error(err)
	}
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "upgradeallowances"}, "w", nil)
}

func ofPods() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
}
