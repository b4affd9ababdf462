// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// pair are two managers, of which one leads.
type pair []*stack.Manager

// elect has one of several managers lead: another does a few seconds after it died.
func elect() []string {
	return []string{"--leader-elect", "--leader-lease-duration=3s", "--leader-renew-deadline=2s", "--leader-retry-period=300ms"}
}

// newPair has a second manager run until the test ends.
func newPair(t *testing.T) pair {
	t.Helper()

	first := running.Manager()
	if err := first.Restart(t.Context(), elect()...); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := first.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})

	second, err := running.StartManager(t.Context(), "kausality-manager-2", elect()...)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})

	return pair{first, second}
}

// kill kills the one that leads, or the one that does not, and starts it again.
func (p pair) kill(ctx context.Context, leader bool) (string, error) {
	for _, m := range p {
		is, err := leads(ctx, m)
		if err != nil {
			return "", err
		}

		if is == leader {
			return kill(ctx, m.Name(), elect()...)
		}
	}

	return "", fmt.Errorf("of two managers none leads, or both do: %w", world.ErrOther)
}

// leads reports whether a manager does.
func leads(ctx context.Context, m *stack.Manager) (bool, error) {
	got, err := world.Scrape(ctx, m.MetricsURL)
	if err != nil {
		return false, err
	}

	return slices.ContainsFunc(got["leader_election_master_status"].GetMetric(), func(m *dto.Metric) bool {
		return m.GetGauge().GetValue() == 1
	}), nil
}
