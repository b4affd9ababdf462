// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// An opening is one of a gate.
type opening struct {
	actions string
	at      time.Time
}

// watched is a history that is written while it happens, with how long the gates of
// the managed resources stood open.
type watched struct {
	*history

	opened map[subject]opening
	open   map[string][]time.Duration
}

// follow reads the managed resources of tenants until the context ends.
func follow(ctx context.Context, c client.WithWatch) *watched {
	h := &watched{history: newHistory(), opened: map[subject]opening{}, open: map[string][]time.Duration{}}

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
func (h *watched) gone(s subject) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if was := h.opened[s]; was.actions != "" {
		h.open[s.kind+" "+was.actions] = append(h.open[s.kind+" "+was.actions], time.Since(was.at))
	}

	delete(h.opened, s)
}

// add reads a version.
func (h *watched) add(u *unstructured.Unstructured) {
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
func (h *watched) addValue(s subject, u *unstructured.Unstructured, field string, trace []v1alpha1.TraceEntry) {
	value, ok := fieldpath.Value(u.Object, field)
	if !ok {
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

// measure notes how long a gate stood open.
func (h *watched) measure(s subject, rec *v1alpha1.GateRecord, set []string) {
	acting := strings.Join(management.Acting(set), "+")
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

// durations says how long gates stood open, by kind and actions.
func (h *watched) durations() string {
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
