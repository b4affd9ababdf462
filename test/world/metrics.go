// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are what a process exposes, by name.
type Metrics map[string]*dto.MetricFamily

// Scrape reads the metrics of a process.
func Scrape(ctx context.Context, url string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("cannot scrape %q: %w", url, err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot scrape %q: %w", url, err)
	}

	defer func() { _ = rsp.Body.Close() }()

	if rsp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot scrape %q: %s: %w", url, rsp.Status, ErrOther)
	}

	return ParseMetrics(rsp.Body)
}

// ParseMetrics reads metrics in Prometheus' text format.
func ParseMetrics(r io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)

	out, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("cannot parse metrics: %w", err)
	}

	return out, nil
}

// Sum adds up the counters of a name that have all of the labels, each as
// name=value.
func (m Metrics) Sum(name string, labels ...string) float64 {
	var total float64

	for _, one := range m[name].GetMetric() {
		have := make([]string, 0, len(one.GetLabel()))
		for _, l := range one.GetLabel() {
			have = append(have, l.GetName()+"="+l.GetValue())
		}

		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(have, l) }) {
			total += one.GetCounter().GetValue()
		}
	}

	return total
}
