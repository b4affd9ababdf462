// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// exports compares what the manager exports with its reference.
func exports(ctx context.Context, t *testing.T) {
	t.Helper()

	raw, err := os.ReadFile("../../docs/reference/metrics.json")
	if err != nil {
		t.Fatal(err)
	}

	var list []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}

	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}

	written := map[string]string{}
	for _, m := range list {
		written[m.Name] = m.Type
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, running.ManagerMetricsURL(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()

	parser := expfmt.NewTextParser(model.UTF8Validation)

	found, err := parser.TextToMetricFamilies(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}

	ours := 0

	for name, family := range found {
		if !strings.HasPrefix(name, "kausality_") {
			continue
		}

		ours++

		if typ := strings.ToLower(family.GetType().String()); written[name] != typ {
			t.Errorf("the reference has %s as %q, and the manager exports it as %s", name, written[name], typ)
		}
	}

	if ours < 8 {
		t.Errorf("the manager exports only %d metrics of ours", ours)
	}
}
