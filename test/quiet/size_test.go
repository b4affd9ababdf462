// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package quiet_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/usage"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// breakers checks that no circuit breaker of Crossplane's has opened.
func (m market) breakers(t *testing.T) {
	t.Helper()

	families, err := world.Scrape(t.Context(), running.CrossplaneMetricsURL())
	if err != nil {
		t.Fatal(err)
	}

	events, opens := families.Sum("circuit_breaker_events_total"), families.Sum("circuit_breaker_opens_total")
	t.Logf("Crossplane's circuit breakers saw %.0f events, and opened %.0f times", events, opens)

	if events == 0 || opens > 0 {
		t.Errorf("Crossplane's circuit breakers saw %v events, and opened %v times", events, opens)
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
		now, err := usage.Memory(p.PID(), usage.Resident)
		world.Must(t, err)

		peak, err := usage.Memory(p.PID(), usage.Peak)
		world.Must(t, err)

		t.Logf("%s has %.0f MiB, at most %.0f", p.Name(), now, peak)
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
