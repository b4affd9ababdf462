// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// managerName is the name of our process in the stack.
const managerName = "kausality-manager"

// manager returns the process id of our manager.
func (c *cluster) manager() int { return c.stack.Process(managerName).PID() }

// counted sums a counter of the manager's metrics.
func (c *cluster) counted(ctx context.Context, name string, labels ...string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.stack.ManagerMetricsURL(), http.NoBody)
	if err != nil {
		return 0, err
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.

	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		return 0, err
	}

	return sum(raw, name, labels...)
}

// calls returns how many requests the manager has made of the API server by now.
func (c *cluster) calls(ctx context.Context) (float64, error) {
	return c.counted(ctx, "rest_client_requests_total")
}

// sum adds up the values of a counter, in Prometheus' text format, over all that have some labels.
func sum(raw []byte, name string, labels ...string) (float64, error) {
	var out float64

lines:
	for line := range strings.Lines(string(raw)) {
		rest, ok := strings.CutPrefix(line, name+"{")
		if !ok {
			continue
		}

		for _, label := range labels {
			if !strings.Contains(rest, label) {
				continue lines
			}
		}

		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, '}')+1:]), 64)
		if err != nil {
			return 0, err
		}

		out += value
	}

	return out, nil
}
