// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAnAllowedChangeWarnsOfNothing changes some XRs several times, as who may.
// Crossplane composes while the manager moves gates, so that it writes what it read
// before, again and again.
func TestAnAllowedChangeWarnsOfNothing(t *testing.T) {
	world.Long(t)
	t.Parallel()

	const (
		calm   = 6
		change = 4
	)

	c := newCluster(t, "Racer", "")

	text, err := os.ReadFile("testdata/racers.yaml")
	if err != nil {
		t.Fatal(err)
	}

	swift := strings.Replace(string(text), "  - step: wait\n    functionRef: {name: function-slow}\n", "", 1)
	if err := c.apply(t.Context(), admin, swift); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup

	for i := range calm {
		wg.Go(func() {
			calm := c.of("Racer", fmt.Sprint("calm-", i))

			for n := range change {
				size := fmt.Sprint("size-", n)

				err := calm.apply(t.Context(), hans, sized("Racer", calm.name, size))
				if err == nil {
					err = scenario.Eventually(t.Context(), size, all(calm.shows("size", size, "car"), calm.spent, calm.says(": settled")))
				}

				if err != nil {
					t.Errorf("%v\n%s", err, calm.dump(t.Context()))

					return
				}
			}
		})
	}

	wg.Wait()

	if err := c.warned(t.Context(), "calm-"); err != nil {
		t.Error(err)
	}
}

// warned returns the warnings about XRs whose names begin with something.
func (c cluster) warned(ctx context.Context, prefix string) error {
	events := &corev1.EventList{}
	if err := c.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("cannot list events: %w", err)
	}

	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && strings.HasPrefix(e.InvolvedObject.Name, prefix) {
			return fmt.Errorf("%s %s, %d times: %s %s: %w", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Count, e.Reason, e.Message, world.ErrOther)
		}
	}

	return nil
}
