// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

func TestMetricsAreSummedByTheirLabels(t *testing.T) {
	t.Parallel()

	const text = `# TYPE writes_total counter
writes_total{kind="Object",verb="patch"} 3
writes_total{kind="Object",verb="update"} 4
writes_total{kind="ConfigMap",verb="patch"} 5
`

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)

			return
		}

		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)

	found, err := world.Scrape(t.Context(), server.URL+"/metrics")
	if err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		reason, metric string
		labels         []string
		want           float64
	}{
		"All":       {reason: "Without labels it is the sum of all.", metric: "writes_total", want: 12},
		"OneLabel":  {reason: "A label leaves those that have it.", metric: "writes_total", labels: []string{"kind=Object"}, want: 7},
		"TwoLabels": {reason: "All labels count.", metric: "writes_total", labels: []string{"verb=patch", "kind=Object"}, want: 3},
		"Missing":   {reason: "What is not exposed is none.", metric: "reads_total"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := found.Sum(tc.metric, tc.labels...); got != tc.want {
				t.Errorf("%s\nSum: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}

	if _, err := world.Scrape(t.Context(), server.URL+"/elsewhere"); err == nil {
		t.Error("a status of 404 is taken for metrics")
	}
}
