// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package quiet_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// breakers checks that no circuit breaker of Crossplane's has opened.
func (m market) breakers(t *testing.T) {
	t.Helper()

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, running.CrossplaneMetricsURL(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = rsp.Body.Close() }()

	parser := expfmt.NewTextParser(model.UTF8Validation)

	families, err := parser.TextToMetricFamilies(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}

	sum := func(name string) (out float64) {
		for _, metric := range families[name].GetMetric() {
			out += metric.GetCounter().GetValue()
		}

		return out
	}

	t.Logf("Crossplane's circuit breakers saw %.0f events, and opened %.0f times", sum("circuit_breaker_events_total"), sum("circuit_breaker_opens_total"))

	if sum("circuit_breaker_events_total") == 0 || sum("circuit_breaker_opens_total") > 0 {
		t.Errorf("Crossplane's circuit breakers saw %v events, and opened %v times", sum("circuit_breaker_events_total"), sum("circuit_breaker_opens_total"))
	}

	for _, u := range m.all(t, stallKind()) {
		if c, ok := resource.ConditionOf(&u, "Responsive"); !ok || !c.True() {
			t.Errorf("%s: %+v", u.GetName(), c)
		}
	}
}

// sizes logs what it costs: memory, and annotations.
func (m market) sizes(t *testing.T) {
	t.Helper()

	for _, p := range []*stack.Process{running.Process(processFunction), running.Process(processManager), running.Process(processOther)} {
		t.Logf("%s has %s", p.Name(), memory(p))
	}

	stalls, sum := 0, 0

	for _, u := range m.all(t, stallKind()) {
		stalls++
		sum += bytes(&u)
	}

	t.Logf("%d XRs have %d bytes of annotations of ours each", stalls, sum/max(stalls, 1))

	for _, kind := range []schema.GroupVersionKind{objectKind(), configMapKind()} {
		n, sum, wishes := 0, 0, 0

		for _, u := range m.all(t, kind) {
			if _, ok := resource.ParentOf(&u); ok {
				n++
				sum += bytes(&u)
				wishes += len(u.GetAnnotations()[v1alpha1.AnnotationWish])
			}
		}

		t.Logf("%d composed resources of kind %s have %d bytes each, of which the record of wishes is %d", n, kind.Kind, sum/max(n, 1), wishes/max(n, 1))
	}
}

// bytes is how large the annotations of ours are.
func bytes(u *unstructured.Unstructured) (out int) {
	for key, value := range u.GetAnnotations() {
		if strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			out += len(key) + len(value)
		}
	}

	return out
}

// memory is what a process has, as Linux tells; elsewhere nothing is known.
func memory(p *stack.Process) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return err.Error()
	}

	var out []string

	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "VmHWM:") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}

	return strings.Join(out, ", ")
}
