// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	dto "github.com/prometheus/client_model/go"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// described is a metric as the reference has it.
type described struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Labels  []string `json:"labels"`
	Program string   `json:"program"`
}

// exports compares what the programs export with the reference, both ways.
func exports(ctx context.Context, t *testing.T) {
	t.Helper()

	raw, err := os.ReadFile("../../docs/reference/metrics.json")
	if err != nil {
		t.Fatal(err)
	}

	var list []described
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}

	for program, url := range map[string]string{
		manager: running.ManagerMetricsURL(), "function-kausality": "http://" + functionMetrics + "/metrics",
	} {
		found := scraped(ctx, t, url)
		written := map[string]described{}

		for _, m := range list {
			if m.Program != program {
				continue
			}

			written[m.Name] = m

			// One with labels shows itself only after it happened.
			if found[m.Name] == nil && len(m.Labels) == 0 {
				t.Errorf("the reference has %s, and %s does not export it", m.Name, program)
			}
		}

		ours := 0

		for name, family := range found {
			if !strings.HasPrefix(name, "kausality_") {
				continue
			}

			ours++

			if is := (described{name, strings.ToLower(family.GetType().String()), labels(family), program}); !cmp.Equal(is, written[name], sorted()) {
				t.Errorf("the reference has %+v, and %s exports %+v", written[name], program, is)
			}
		}

		if ours == 0 {
			t.Errorf("%s exports no metrics of ours", program)
		}
	}
}

func sorted() cmp.Option {
	return cmpopts.SortSlices(func(a, b string) bool { return a < b })
}

// labels are those of a metric.
func labels(family *dto.MetricFamily) []string {
	pairs := family.GetMetric()[0].GetLabel()

	out := make([]string, 0, len(pairs))
	for _, l := range pairs {
		out = append(out, l.GetName())
	}

	return out
}

// scraped reads what a program exports.
func scraped(ctx context.Context, t *testing.T, url string) world.Metrics {
	t.Helper()

	out, err := world.Scrape(ctx, url)
	if err != nil {
		t.Fatal(err)
	}

	return out
}
