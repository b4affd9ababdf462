// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheReferenceHasEveryMetric that the sources have, and says so where one is
// forgotten or invented.
func TestTheReferenceHasEveryMetric(t *testing.T) {
	t.Chdir("../..")

	list, err := metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	last := len(list) - 1
	if err := complete(list[:last]); !errors.Is(err, errUndescribed) {
		t.Errorf("without %s: %v", list[last].Name, err)
	}

	if err := complete(append(list, metric{Name: metricPrefix + "other"})); !errors.Is(err, errUndescribed) {
		t.Errorf("with one more: %v", err)
	}

	var out bytes.Buffer
	if err := writeMetricsJSON(t.Context(), &out); err != nil {
		t.Fatal(err)
	}

	written, err := os.ReadFile("docs/reference/metrics.json")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(out.String(), string(written)); diff != "" {
		t.Errorf("docs/reference/metrics.json, as generated -, as it is +; make generate writes it:\n%s", diff)
	}
}
