// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/gatecontroller"
	"github.com/kausality-io/kausality-crossplane/internal/build"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// metric is one that a program exports.
type metric struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Labels  []string `json:"labels"`
	Help    string   `json:"help"`
	Program string   `json:"program"`
}

// recorder is a registry that only notes what is registered.
type recorder struct {
	prometheus.Registerer

	program string
	metrics []metric
}

// described matches what [prometheus.Desc] says of itself; it has no other way.
var described = regexp.MustCompile(`^Desc\{fqName: (".*"), help: (".*"), unit: "[^"]*", constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// Register implements prometheus.Registerer.
func (r *recorder) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)

	go func() {
		c.Describe(descs)
		close(descs)
	}()

	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			return fmt.Errorf("%s: %w", d, errUndescribed)
		}

		name, nameErr := strconv.Unquote(m[1])
		help, helpErr := strconv.Unquote(m[2])

		if err := cmp.Or(nameErr, helpErr); err != nil {
			return fmt.Errorf("cannot read %s: %w", d, err)
		}

		labels := []string{}
		if m[3] != "" {
			labels = strings.Split(m[3], ",")
		}

		r.metrics = append(r.metrics, metric{Name: name, Type: kindOf(c), Labels: labels, Help: help, Program: r.program})
	}

	return nil
}

// kindOf is the type of a collector's metrics; collectors of our own have gauges.
func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case prometheus.Gauge:
		return "gauge"
	case *prometheus.CounterVec, prometheus.Counter:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	default:
		return "gauge"
	}
}

// endless is a certificate that says nothing.
type endless struct{}

func (endless) NotAfter() time.Time { return time.Time{} }

// metrics are those that the programs make.
func metrics(ctx context.Context) ([]metric, error) {
	function := &recorder{program: "function-kausality"}
	if err := fn.New(logging.NewNopLogger()).Register(function); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	manager := &recorder{program: "kausality-manager"}
	if err := gatecontroller.DescribeMetrics(manager); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	for _, program := range []*recorder{function, manager} {
		if err := build.Register(program, ""); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}

	if _, err := webhook.NewMetrics(manager, endless{}); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	heart := webhook.NewHeartbeat(nil, client.ObjectKey{}, logr.Discard(), time.Now)
	if err := heart.Register(ctx, manager); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}

	out := slices.Concat(function.metrics, manager.metrics)
	slices.SortFunc(out, func(a, b metric) int {
		return cmp.Or(strings.Compare(a.Program, b.Program), strings.Compare(a.Name, b.Name))
	})

	return out, complete(out)
}

func writeMetrics(ctx context.Context, out *bytes.Buffer) error {
	list, err := metrics(ctx)
	if err != nil {
		return err
	}

	fmt.Fprint(out, "\n# Metrics\n\nIn Prometheus' format: the manager's at `--metrics-bind-address`, the function's at `--metrics-address`. "+
		"Beside these, the manager exports what controller-runtime does, and the function calls by gRPC (`grpc_server_*`); "+
		"both those of Go and the process.\n")

	program := ""

	for _, m := range list {
		if m.Program != program {
			program = m.Program
			fmt.Fprintf(out, "\n## %s\n\n| Name | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n", program)
		}

		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), cell(m.Help))
	}

	return nil
}

// writeMetricsJSON writes them for programs: rules and dashboards are checked
// against it.
func writeMetricsJSON(ctx context.Context, out *bytes.Buffer) error {
	list, err := metrics(ctx)
	if err != nil {
		return err
	}

	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)

	return enc.Encode(list)
}
