// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric is one that a program exports, as make generate writes it.
type metric struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
}

// exported are the labels of all series there are, by name.
func exported(t *testing.T) map[string][]string {
	t.Helper()

	raw, err := os.ReadFile("../../../docs/reference/metrics.json")
	if err != nil {
		t.Fatal(err)
	}

	var list []metric
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		t.Fatalf("%d metrics: %v", len(list), err)
	}

	// What every target has.
	out := map[string][]string{"up": nil}

	for _, m := range list {
		if m.Type == "histogram" {
			out[m.Name+"_bucket"] = append(slices.Clone(m.Labels), "le")
			out[m.Name+"_sum"], out[m.Name+"_count"] = m.Labels, m.Labels

			continue
		}

		out[m.Name] = m.Labels
	}

	return out
}

// known fails the test where a query does not parse, or uses a metric or label
// that nothing exports. It returns the metrics.
func known(t *testing.T, query string, series map[string][]string) []string {
	t.Helper()

	expr, err := parser.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)

		return nil
	}

	var names, having []string

	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}

		names = append(names, s.Name)
		own, ok := series[s.Name]

		if !ok {
			t.Errorf("%s: nothing exports %s", query, s.Name)
		}

		own = append(slices.Clone(own), "job", "instance", model.MetricNameLabel)
		having = append(having, own...)

		for _, m := range s.LabelMatchers {
			if !slices.Contains(own, m.Name) {
				t.Errorf("%s: %s has no label %s", query, s.Name, m.Name)
			}
		}

		return nil
	})

	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, l := range a.Grouping {
				if !slices.Contains(having, l) {
					t.Errorf("%s: no metric in it has label %s", query, l)
				}
			}
		}

		return nil
	})

	return names
}

// keeps reports whether a query names a label.
func keeps(query, label string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(label) + `\b`).MatchString(query)
}

// used says which label a template refers to.
func used(text string) []string {
	var out []string

	for part := range strings.SplitSeq(text, "{{") {
		name, _, ok := strings.Cut(part, "}}")
		if ok {
			out = append(out, strings.TrimPrefix(strings.TrimSpace(name), "$labels."))
		}
	}

	return out
}
