// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// byName asks for what has a name.
func byName(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
}

// answer is what writes of a status are answered.
type answer struct {
	fails  error
	writes int
}

// funcs fail writes as long as there is an error, and count them.
func (a *answer) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			a.writes++

			if a.fails != nil {
				return a.fails
			}

			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}
}

func TestAStatusThatCouldNotBeWrittenIsWrittenByTheRetry(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "any"}, "any", nil)
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "any"}, "any")

	cases := map[string]struct {
		reason string
		fails  error
		err    error
		late   bool
	}{
		"Refused":  {reason: "What is refused is an error.", fails: fixture.ErrRefused, err: fixture.ErrRefused},
		"Conflict": {reason: "A conflict is to be tried again silently.", fails: conflict, err: conflict, late: true},
		"Gone":     {reason: "What is gone needs no status.", fails: gone},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &answer{}
			s, want, c := reporting(t, a.funcs())
			s.Set(t.Context(), inCluster(want, fixture.ServedKinds()))

			for obj, by := range map[string]reconcile.Reconciler{"p": Policies{s}, "a": Enforcements{s}} {
				*a = answer{fails: tc.fails}

				got, err := by.Reconcile(t.Context(), byName(obj))
				if !got.IsZero() || !errors.Is(err, tc.err) || object.Outdated(err) != tc.late {
					t.Errorf("%s\n%s: %v, %v", tc.reason, obj, got, err)
				}

				a.fails = nil

				// The third finds that nothing is to be written.
				for range 2 {
					if _, err := by.Reconcile(t.Context(), byName(obj)); err != nil {
						t.Errorf("%s\n%s again: %v", tc.reason, obj, err)
					}
				}

				if a.writes != 2 {
					t.Errorf("%s\n%s: %d writes, want 2", tc.reason, obj, a.writes)
				}
			}

			if got := readyNames(t, c); got != "p a" {
				t.Errorf("%s\nreported: %q", tc.reason, got)
			}
		})
	}
}

func TestAStatusIsOfTheVersionThatWasRead(t *testing.T) {
	s, want, c := reporting(t, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			// Somebody else writes in between.
			other := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"b"}}}`))
			now, _ := obj.DeepCopyObject().(client.Object)

			return errors.Join(c.Patch(ctx, now, other), c.SubResource(sub).Patch(ctx, obj, p, opts...))
		},
	})
	s.Set(t.Context(), inCluster(want, fixture.ServedKinds()))

	for obj, by := range map[string]reconcile.Reconciler{"p": Policies{s}, "a": Enforcements{s}} {
		got, err := by.Reconcile(t.Context(), byName(obj))
		if !object.Outdated(err) || !got.IsZero() {
			t.Errorf("%s: %v, %v", obj, got, err)
		}
	}

	if got := readyNames(t, c); got != "" {
		t.Errorf("reported over a change of somebody else: %q", got)
	}
}

func TestNothingIsReportedOfWhatIsNotAppliedYet(t *testing.T) {
	s, want, c := reporting(t, interceptor.Funcs{})
	reconcileAll := func() {
		t.Helper()

		for obj, by := range map[string]reconcile.Reconciler{"p": Policies{s}, "a": Enforcements{s}, "gone": Policies{s}, "none": Enforcements{s}} {
			if got, err := by.Reconcile(t.Context(), byName(obj)); err != nil || !got.IsZero() {
				t.Errorf("%s: %v, %v", obj, got, err)
			}
		}
	}

	// 1. Nothing is applied.
	reconcileAll()

	// 2. Another generation is, or what had the same name before.
	other := admission.Config{Policies: slices.Clone(want.Policies), Enforcements: slices.Clone(want.Enforcements)}
	other.Policies[0].SetGeneration(7)
	other.Enforcements[0].SetUID(types.UID("old"))
	s.Set(t.Context(), inCluster(other, fixture.ServedKinds()))
	reconcileAll()

	if got := readyNames(t, c); got != "" {
		t.Errorf("reported: %q", got)
	}

	// 3. All is.
	s.Set(t.Context(), inCluster(want, fixture.ServedKinds()))
	reconcileAll()

	if got := readyNames(t, c); got != "p a" {
		t.Errorf("reported: %q", got)
	}
}

func TestWhatIsAppliedIsReportedByAControllerOfEachKind(t *testing.T) {
	s, want, c := reporting(t, interceptor.Funcs{})

	for _, start := range []func() (controller.Controller, error){
		func() (controller.Controller, error) { return Policies{s}.Controller(nil, logr.Discard()) },
		func() (controller.Controller, error) { return Enforcements{s}.Controller(nil, logr.Discard()) },
	} {
		ctl, err := start()
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)

		go func() { done <- ctl.Start(ctx) }()

		t.Cleanup(func() {
			cancel()

			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}

	s.Set(t.Context(), inCluster(want, fixture.ServedKinds()))

	deadline := time.Now().Add(10 * time.Second)
	for readyNames(t, c) != "p q a b" {
		if time.Now().After(deadline) {
			t.Fatalf("reported: %q, want all", readyNames(t, c))
		}

		time.Sleep(10 * time.Millisecond)
	}
}
