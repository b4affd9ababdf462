// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
)

// unreportedFor is how long what policies say of kinds of which nothing has been looked
// at stays as it was before we began.
const unreportedFor = 5 * time.Minute

// Ungated knows the managed resources that have no gate, or none that matters,
// because their providers do not support management policies.
type Ungated struct {
	Prompt *watch.Prompt
	desc   *prometheus.Desc

	mu    sync.Mutex
	found map[schema.GroupKind]map[types.NamespacedName]struct{}
	// reconciled are the kinds of which something has been reconciled, and asked those
	// about which somebody wanted to know before that, since when.
	reconciled map[schema.GroupKind]bool
	asked      map[schema.GroupKind]time.Time
}

// NewUngated makes the set, which prompts where the first and the last of a kind come and go.
func NewUngated(p *watch.Prompt) *Ungated {
	return &Ungated{
		Prompt: p,
		desc: prometheus.NewDesc("kausality_ungated_resources",
			"Managed resources that are not gated, because their provider does not support management policies.",
			[]string{object.LabelGroup, object.LabelKind}, nil),
		found:      map[schema.GroupKind]map[types.NamespacedName]struct{}{},
		reconciled: map[schema.GroupKind]bool{}, asked: map[schema.GroupKind]time.Time{},
	}
}

// Set notes whether a resource is one, and returns whether that is new of one
// that is. The first and the last of a kind are reported on policies.
func (x *Ungated) Set(gvk schema.GroupVersionKind, key types.NamespacedName, is bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	gk := gvk.GroupKind()
	before := len(x.found[gk])
	_, was := x.found[gk][key]

	switch {
	case !is:
		delete(x.found[gk], key)
	case x.found[gk] == nil:
		x.found[gk] = map[types.NamespacedName]struct{}{key: {}}
	default:
		x.found[gk][key] = struct{}{}
	}

	_, asked := x.asked[gk]
	asked = asked && !x.reconciled[gk]
	x.reconciled[gk] = true

	if after := len(x.found[gk]); asked || (before == 0) != (after == 0) {
		x.Prompt.Soon()
	}

	return is && !was
}

// Keep forgets what is not of some kinds.
func (x *Ungated) Keep(kinds []kind.Served) {
	x.mu.Lock()
	defer x.mu.Unlock()

	known := map[schema.GroupKind]bool{}
	for _, k := range kinds {
		known[k.GVK.GroupKind()] = true
	}

	for gk := range x.found {
		if !known[gk] {
			delete(x.found, gk)
		}
	}
}

// Count is how many there are of a kind.
func (x *Ungated) Count(gk schema.GroupKind) int {
	x.mu.Lock()
	defer x.mu.Unlock()

	return len(x.found[gk])
}

// Unreported reports whether nothing is known of a kind yet, but may soon be.
func (x *Ungated) Unreported(gk schema.GroupKind) bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	if _, ok := x.asked[gk]; !ok {
		x.asked[gk] = time.Now()
	}

	return !x.reconciled[gk] && time.Since(x.asked[gk]) < unreportedFor
}

// Describe implements prometheus.Collector.
func (x *Ungated) Describe(out chan<- *prometheus.Desc) { out <- x.desc }

// Collect implements prometheus.Collector.
func (x *Ungated) Collect(out chan<- prometheus.Metric) {
	x.mu.Lock()
	defer x.mu.Unlock()

	for gk, found := range x.found {
		out <- prometheus.MustNewConstMetric(x.desc, prometheus.GaugeValue, float64(len(found)), gk.Group, gk.Kind)
	}
}
