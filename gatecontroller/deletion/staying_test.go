// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// related are what events are about, and what they relate to.
type related [][2]string

func (r *related) Eventf(regarding, other runtime.Object, _, _, _, _ string, _ ...any) {
	name := func(o runtime.Object) string {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || u == nil {
			return ""
		}

		return u.GetName()
	}

	*r = append(*r, [2]string{name(regarding), name(other)})
}

// TestItIsReportedOnceOfEachThatStays also where the parent is seen once more with its
// finalizer. Events of one object that relate to the same are counted as one.
func TestItIsReportedOnceOfEachThatStays(t *testing.T) {
	told := &related{}

	e, err := NewLeftovers(prometheus.NewRegistry(), nil, nil, told, "", gate.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}

	parent := fixture.Parse(t, "{kind: Wiki, metadata: {name: handbook, uid: w}}")
	children := []*unstructured.Unstructured{
		fixture.Parse(t, "{kind: Object, metadata: {name: cache, uid: c}}"), fixture.Parse(t, "{kind: Object, metadata: {name: db, uid: d}}"),
	}

	for range 2 {
		for _, child := range children {
			e.reportOrphaned(t.Context(), parent, child, &decision.Decision{})
		}
	}

	want := related{{"handbook", "cache"}, {"cache", "handbook"}, {"handbook", "db"}, {"db", "handbook"}}
	if len(*told) != len(want) {
		t.Fatalf("told %v, want %v", *told, want)
	}

	for i := range want {
		if (*told)[i] != want[i] {
			t.Errorf("told %v, want %v", *told, want)
		}
	}

	// Its next parent is another one.
	e.reportOrphaned(t.Context(), fixture.Parse(t, "{kind: Wiki, metadata: {name: handbook, uid: w2}}"), children[0], &decision.Decision{})

	if len(*told) != len(want)+2 {
		t.Errorf("told %v of the next parent", (*told)[len(want):])
	}
}
