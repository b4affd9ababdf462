// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func TestTwoControllersOfOneNameReconcileWhatTheirSourcesAskFor(t *testing.T) {
	got := make(chan string, 2)

	for _, name := range []string{"a", "b"} {
		asks := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			req := reconcile.Request{}
			req.Name = name
			q.Add(req)

			return nil
		})

		ctl, err := NewController("same", reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			got <- req.Name

			return reconcile.Result{}, nil
		}), controller.Options{Logger: logr.Discard()}, asks)
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- ctl.Start(ctx) }()

		if asked := <-got; asked != name {
			t.Errorf("reconciled %q, want %q", asked, name)
		}

		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeMadeIsNamed(t *testing.T) {
	errName := "must specify Name"

	if _, err := NewController("", reconcile.Func(nil), controller.Options{Logger: logr.Discard()}); err == nil || !strings.Contains(err.Error(), "the  controller: "+errName) {
		t.Errorf("without a name: %v", err)
	}

	// A source without a handler fails once the controller starts it.
	broken := source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return errBroken })

	ctl, err := NewController("status", reconcile.Func(nil), controller.Options{Logger: logr.Discard()}, broken)
	if err != nil {
		t.Fatal(err)
	}

	if err := ctl.Start(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("start: %v, want %v", err, errBroken)
	}
}

// TestWhatIsOutdatedIsTriedAgainSilently later each time, and soon where it was not before.
func TestWhatIsOutdatedIsTriedAgainSilently(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "shops"}, "x", nil)
	later := reconcile.Result{RequeueAfter: time.Hour}

	var (
		answer error
		a, b   reconcile.Request
	)

	a.Name, b.Name = "a", "b"
	p := patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return later, answer }))

	// outdated expects a delay of a request that is outdated for the nth time.
	outdated := func(req reconcile.Request, n int) {
		t.Helper()

		answer = fmt.Errorf("cannot write it: %w", conflict)
		from := min(50*time.Millisecond<<n, 5*time.Second)

		if got, err := p.Reconcile(t.Context(), req); err != nil || got.RequeueAfter < from || got.RequeueAfter > from*3/2 {
			t.Errorf("%s, outdated %d times before: %v, %v, want after %s to %s", req.Name, n, got, err, from, from*3/2)
		}
	}

	for n := range 20 {
		outdated(a, n)
	}

	outdated(b, 0) // It is another one.

	for _, tc := range []struct {
		reason string
		answer error
	}{
		{reason: "Success is as it is."},
		{reason: "So is another error.", answer: errBroken},
	} {
		answer = tc.answer

		if got, err := p.Reconcile(t.Context(), a); got != later || !errors.Is(err, tc.answer) {
			t.Errorf("%s\n%v, %v", tc.reason, got, err)
		}

		outdated(a, 0) // The tries before that are forgotten.
		outdated(a, 1)
	}

	outdated(b, 1)
}

// TestAControllerTriesWhatIsOutdatedAgain until it is not, and says nothing.
func TestAControllerTriesWhatIsOutdatedAgain(t *testing.T) {
	tried := make(chan time.Time, 3)
	asks := source.TypedFunc[string](func(_ context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
		q.Add("x")

		return nil
	})

	var (
		mu     sync.Mutex
		logged []string
	)

	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()

		logged = append(logged, args)
	}, funcr.Options{})

	ctl, err := NewController("any", reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) {
		tried <- time.Now()

		if len(tried) < cap(tried) {
			return reconcile.Result{}, apierrors.NewConflict(schema.GroupResource{Resource: "shops"}, "x", nil)
		}

		return reconcile.Result{}, nil
	}), controller.TypedOptions[string]{LogConstructor: func(*string) logr.Logger { return logger }}, asks)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- ctl.Start(ctx) }()

	for deadline := time.Now().Add(10 * time.Second); len(tried) < cap(tried); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is tried %d times", len(tried))
		}
	}

	cancel()

	if err := <-ended; err != nil {
		t.Error(err)
	}

	first, second, third := <-tried, <-tried, <-tried
	if second.Sub(first) < least || third.Sub(second) < 2*least {
		t.Errorf("tried again after %s and %s", second.Sub(first), third.Sub(second))
	}

	mu.Lock()
	defer mu.Unlock()

	for _, line := range logged {
		if strings.Contains(line, "error") {
			t.Errorf("logged %s", line)
		}
	}
}

// patiently makes a reconciler patient, as New does.
func patiently(r reconcile.Reconciler) patient[reconcile.Request] {
	return patient[reconcile.Request]{r, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](least, most)}
}

var errBroken = errors.New("the source is broken")

func TestWhatWasMadeAgainWhileItWasNotWatchedCountsAsChanged(t *testing.T) {
	of := func(uid types.UID, generation int64) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation}}
	}

	for name, tc := range map[string]struct {
		now  client.Object
		want bool
	}{
		"Status":    {of("a", 1), false},
		"Spec":      {of("a", 2), true},
		"MadeAgain": {of("b", 1), true},
	} {
		if got := SpecChanged().Update(event.UpdateEvent{ObjectOld: of("a", 1), ObjectNew: tc.now}); got != tc.want {
			t.Errorf("%s: changed %v, want %v", name, got, tc.want)
		}
	}
}
