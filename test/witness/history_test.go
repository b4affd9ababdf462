// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Kinds of managed resources.
const (
	kindDatabase = "Database"
	kindRole     = "Role"
	kindGrant    = "Grant"
	kindView     = "View"
)

// A history is what every version of the managed resources said of why they are as
// they are, and how long their gates stood open.
type history struct {
	mu      sync.Mutex
	traces  map[subject]map[cause]bool
	values  map[subject]map[deed]map[cause]bool
	windows map[subject]map[string]bool
	opened  map[subject]opening
	open    map[string][]time.Duration
}

// A subject is a managed resource.
type subject struct{ kind, name string }

// A cause is an entry of a trace, as far as it tells one from another.
type cause struct {
	field, initiator, ticket string
	generation               int64
}

// An opening is one of a gate.
type opening struct {
	actions string
	at      time.Time
}

func newHistory() *history {
	return &history{
		traces: map[subject]map[cause]bool{}, values: map[subject]map[deed]map[cause]bool{}, windows: map[subject]map[string]bool{},
		opened: map[subject]opening{}, open: map[string][]time.Duration{},
	}
}

// follow reads the managed resources of tenants until the context ends.
func follow(ctx context.Context, c client.WithWatch) *history {
	h := newHistory()

	for _, kind := range []string{kindDatabase, kindRole, kindGrant, kindView} {
		world.Watch(ctx, c, managedKind(kind), func(u *unstructured.Unstructured, event watch.EventType) {
			h.add(u)

			if event == watch.Deleted {
				h.gone(subject{u.GetKind(), u.GetName()})
			}
		})
	}

	return h
}

// gone notes that a managed resource is, with its gate.
func (h *history) gone(s subject) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if was := h.opened[s]; was.actions != "" {
		h.open[s.kind+" "+was.actions] = append(h.open[s.kind+" "+was.actions], time.Since(was.at))
	}

	delete(h.opened, s)
}

// add reads a version.
func (h *history) add(u *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()

	s := subject{u.GetKind(), u.GetName()}
	if h.traces[s] == nil {
		h.traces[s], h.values[s], h.windows[s] = map[cause]bool{}, map[deed]map[cause]bool{}, map[string]bool{}
	}

	trace, _ := allowance.ParseTrace(u)
	for _, e := range trace {
		h.traces[s][causeOf(e.Field, e.Initiator, e.Generation, e.Trace)] = true
	}

	for field := range strings.FieldsSeq("connectionLimit comment query") {
		h.addValue(s, u, "spec.forProvider."+field, trace)
	}

	list, _ := allowance.Parse(u)

	rec, _ := allowance.ParseGate(u)
	if rec != nil {
		list = append(list, rec.Allowances...)

		for _, w := range rec.Windows {
			h.windows[s][w.Name] = true
		}
	}

	for _, a := range list {
		if n := len(a.Trace); n > 0 {
			h.traces[s][causeOf(a.Trace[n-1].Field, a.Initiator, a.Trace[n-1].Generation, a.Trace)] = true
		}
	}

	h.measure(s, rec, policies(u))
}

// addValue reads what a version says of why a field has the value it has.
func (h *history) addValue(s subject, u *unstructured.Unstructured, field string, trace []v1alpha1.TraceEntry) {
	value, err := fieldpath.Pave(u.Object).GetValue(field)
	if err != nil {
		return
	}

	for _, e := range trace {
		if e.Field != field {
			continue
		}

		d := deed{s.kind, field, fmt.Sprint(value)}
		if h.values[s][d] == nil {
			h.values[s][d] = map[cause]bool{}
		}

		h.values[s][d][causeOf(e.Field, e.Initiator, e.Generation, e.Trace)] = true

		return // It is the newest.
	}
}

// ofValue are the causes of a field having a value.
func (h *history) ofValue(s subject, d deed) []cause {
	h.mu.Lock()
	defer h.mu.Unlock()

	return slices.Collect(maps.Keys(h.values[s][d]))
}

// measure notes how long a gate stood open.
func (h *history) measure(s subject, rec *v1alpha1.GateRecord, set []string) {
	acting := strings.Join(gate.Acting(set), "+")
	was, open := h.opened[s]

	switch {
	case rec == nil || acting == was.actions:
	case open && was.actions != "":
		h.open[s.kind+" "+was.actions] = append(h.open[s.kind+" "+was.actions], time.Since(was.at))

		fallthrough
	default:
		h.opened[s] = opening{acting, time.Now()}
	}
}

func causeOf(field, initiator string, generation int64, trace []v1alpha1.Hop) cause {
	c := cause{field: field, initiator: initiator, generation: generation}

	for _, hop := range trace {
		if t := hop.Attestations["metadata.annotations[ticket]"]; t != "" {
			c.ticket = t
		}
	}

	return c
}

// of are the causes of a field of a managed resource, with a ticket; any where that
// is "".
func (h *history) of(s subject, field, ticket string) []cause {
	h.mu.Lock()
	defer h.mu.Unlock()

	var out []cause

	for c := range h.traces[s] {
		if c.field == field && (ticket == "" || c.ticket == ticket) {
			out = append(out, c)
		}
	}

	return out
}

// openedBy says whether a window has opened the gate of a managed resource.
func (h *history) openedBy(s subject, window string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.windows[s][window]
}

// durations says how long gates stood open, by kind and actions.
func (h *history) durations() string {
	h.mu.Lock()
	defer h.mu.Unlock()

	var out strings.Builder

	for _, what := range slices.Sorted(maps.Keys(h.open)) {
		all := slices.Sorted(slices.Values(h.open[what]))
		round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

		fmt.Fprintf(&out, "  %-24s %4d times open, median %s, longest %s\n", what, len(all), round(all[len(all)/2]), round(all[len(all)-1]))
	}

	return out.String()
}

func managedKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sql.postgresql.m.example.org", Version: "v1beta1", Kind: kind}
}

func policies(u *unstructured.Unstructured) []string {
	return resource.Strings(u.Object, "spec", "managementPolicies")
}
