// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// scraped reads the manager's metrics.
func scraped(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, running.ManagerMetricsURL(), http.NoBody)
	if err != nil {
		return "", err
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.

	raw, err := io.ReadAll(rsp.Body)

	return string(raw), err
}

func TestMetricsTellOfDecisionsAndOfTheCache(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-metrics", "audit")
	task := l.made(t, "task")
	l.ask(t, "large")

	for _, patch := range []string{`{"spec": {"size": "large"}}`, `{"spec": {"color": "blue"}}`} {
		if err := controller(t, worker).Patch(t.Context(), task.DeepCopy(), world.Merge(patch)); err != nil {
			t.Fatal(err)
		}
	}

	for _, want := range []string{
		`(?m)^kausality_webhook_decisions_total\{decision="Allowed",group="lab.example.org",kind="Task",operation="UPDATE",policy="lab-plans",rule="Allowance"\} \d+$`,
		`(?m)^kausality_webhook_decisions_total\{decision="Audited",group="lab.example.org",kind="Task",operation="UPDATE",policy="",rule=""\} \d+$`,
		`(?m)^kausality_webhook_live_reads_total\{group="lab.example.org",kind="Plan"\} \d+$`,
		`(?m)^kausality_webhook_request_seconds_count\{endpoint="mutate"\} \d+$`,
		`(?m)^kausality_webhook_request_seconds_count\{endpoint="enforce"\} \d+$`,
		`(?m)^kausality_webhook_certificate_expiry_timestamp_seconds \d`,
		`(?m)^kausality_enforcement_exception_ending\{enforcement="lab-deny",exception="over"\} 2$`,
	} {
		if err := scenario.Eventually(t.Context(), want, func(ctx context.Context) error {
			text, err := scraped(ctx)
			if err == nil && !regexp.MustCompile(want).MatchString(text) {
				err = world.ErrOther
			}

			return err
		}); err != nil {
			t.Error(err)
		}
	}

	// Some ten seconds at most, and the time that a busy machine takes.
	if err := scenario.Eventually(t.Context(), "a young cache", func(ctx context.Context) error {
		text, err := scraped(ctx)
		if err != nil {
			return err
		}

		m := regexp.MustCompile(`(?m)^kausality_webhook_cache_age_seconds (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			return world.ErrOther
		}

		age, err := strconv.ParseFloat(m[1], 64)
		if err == nil && (age < 0 || age > 20) {
			err = fmt.Errorf("the cache is %v s old: %w", age, world.ErrOther)
		}

		return err
	}); err != nil {
		t.Error(err)
	}
}
