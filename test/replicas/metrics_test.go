// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package replicas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// metrics are values by name and labels; of a histogram its count, and its sum
// under the name with _sum.
type metrics map[string]float64

// scrape reads what a manager counts.
func scrape(ctx context.Context, m *stack.Manager) (metrics, error) {
	families, err := world.Scrape(ctx, m.MetricsURL)
	if err != nil {
		return nil, err
	}

	out := metrics{}

	for name, f := range families {
		for _, m := range f.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}

			key := name + "{" + strings.Join(labels, ",") + "}"
			out[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())

			if h := m.GetHistogram(); h != nil {
				out[name+"_sum{"+strings.Join(labels, ",")+"}"] = h.GetSampleSum()
			}
		}
	}

	return out, nil
}

// like are the metrics whose name starts with something.
func (m metrics) like(prefix string) []string {
	var out []string

	for _, key := range slices.Sorted(maps.Keys(m)) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, fmt.Sprint(key, " ", m[key]))
		}
	}

	return out
}

func get(ctx context.Context, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}

	defer func() { _ = rsp.Body.Close() }()

	raw, err := io.ReadAll(rsp.Body)

	return rsp.StatusCode, string(raw), err
}

// leads reports whether a manager leads.
func leads(m *stack.Manager, want float64) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := scrape(ctx, m)
		if err != nil {
			return err
		}

		if v, ok := got["leader_election_master_status{name="+lease+"}"]; !ok || v != want {
			return fmt.Errorf("%s: %v, want %v: %w", m.Name(), v, want, world.ErrOther)
		}

		return nil
	}
}

// moves are the gates that a manager's log says it moved, as NAMESPACE/NAME, with
// each move.
func moves(t *testing.T, m *stack.Manager) []string {
	t.Helper()

	raw, err := os.ReadFile(m.Log())
	if err != nil {
		t.Fatal(err)
	}

	var out []string

	for line := range strings.Lines(string(raw)) {
		var entry struct {
			Msg       string `json:"msg"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Move      string `json:"move"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "Moved a gate" {
			out = append(out, entry.Namespace+"/"+entry.Name+" "+entry.Move)
		}
	}

	return out
}

// tells checks that the last move that a manager shows each of some gates is one
// move: it tells after it made it.
func tells(t *testing.T, m *stack.Manager, move string, list ...*unstructured.Unstructured) func(context.Context) error {
	t.Helper()

	return func(context.Context) error {
		all := moves(t, m)

		for _, u := range list {
			of, last := u.GetNamespace()+"/"+u.GetName()+" ", ""

			for _, told := range all {
				if strings.HasPrefix(told, of) {
					last = told
				}
			}

			if last != of+move {
				return fmt.Errorf("%s tells last %q, want %q: %w", m.Name(), last, of+move, world.ErrOther)
			}
		}

		return nil
	}
}
