// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is an object that one client changes again and again.
type target struct {
	client client.Client
	object *unstructured.Unstructured
	size   int64
}

// update makes the next change, and says how long its request took.
func (t *target) update(ctx context.Context) (time.Duration, error) {
	t.size++
	if err := unstructured.SetNestedField(t.object.Object, t.size, "spec", "size"); err != nil {
		return 0, err
	}

	start := time.Now()
	err := t.client.Update(ctx, t.object)

	return time.Since(start), err
}

// targetsOf returns n objects, which it makes where there are not that many yet.
func (f *fixture) targetsOf(tb testing.TB, a approach, r role, n int) []*target {
	tb.Helper()

	kind := kindOf(a, r)
	for i := len(f.targets[kind]); i < n; i++ {
		t := &target{client: f.hans, object: newObject(kind, fmt.Sprintf("target-%d", i))}

		if r == child {
			t.client = f.anna
			t.object.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: f.owner.GetAPIVersion(), Kind: f.owner.GetKind(), Name: f.owner.GetName(), UID: f.owner.GetUID(),
				Controller: new(true),
			}})
		}

		if err := t.client.Create(tb.Context(), t.object); err != nil {
			tb.Fatal(err)
		}

		f.targets[kind] = append(f.targets[kind], t)
	}

	return f.targets[kind][:n]
}

// run makes n changes, all targets at the same time, and returns how long each request took.
func run(ctx context.Context, targets []*target, n int) ([]time.Duration, error) {
	var (
		begun atomic.Int64
		wg    sync.WaitGroup
	)

	took, errs := make([][]time.Duration, len(targets)), make([]error, len(targets))

	for i, t := range targets {
		wg.Go(func() {
			for begun.Add(1) <= int64(n) {
				d, err := t.update(ctx)
				if err != nil {
					errs[i] = err

					return
				}

				took[i] = append(took[i], d)
			}
		})
	}

	wg.Wait()

	return slices.Concat(took...), errors.Join(errs...)
}

// percentile returns what that part of the durations does not exceed, in milliseconds.
func percentile(took []time.Duration, part float64) float64 {
	slices.Sort(took)

	rank := int(math.Ceil(part * float64(len(took))))

	return float64(took[max(rank, 1)-1]) / float64(time.Millisecond)
}
