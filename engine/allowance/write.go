// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/internal/plain"
)

// writer writes the plain shape of annotations. It fails for good at the first
// thing that is not plain.
type writer struct {
	out    []byte
	failed bool
}

// writePlain writes a list of allowances or trace entries; false where it is
// not of the plain shape.
func writePlain(v any) (string, bool) {
	w := writer{}

	switch list := v.(type) {
	case []v1alpha1.Allowance:
		w.grow(len(list), func(i int) int { return len(list[i].Trace) })

		for i := range list {
			w.allowance(&list[i])
		}
	case []v1alpha1.TraceEntry:
		w.grow(len(list), func(i int) int { return len(list[i].Trace) })

		for i := range list {
			w.entry(&list[i])
		}
	default:
		return "", false
	}

	return string(w.out), !w.failed
}

// grow makes room for elements and their hops, of a usual size.
func (w *writer) grow(n int, hops func(int) int) {
	const element, hop = 240, 140

	size := n * element
	for i := range n {
		size += hops(i) * hop
	}

	w.out = make([]byte, 0, size)
}

func (w *writer) allowance(a *v1alpha1.Allowance) {
	w.failed = w.failed || len(a.Unknown) > 0
	at := len(w.out)

	w.optional("  apiGroup: ", a.APIGroup)
	w.optional("  kind: ", a.Kind)
	w.optional("  relation: ", string(a.Relation))
	w.optional("  mutation: ", a.Mutation)

	if len(a.Mutations) > 0 {
		w.out = append(w.out, "  mutations:\n"...)
		for _, m := range a.Mutations {
			w.text("  - ", m)
		}
	}

	w.number("  generation: ", a.Generation)
	w.id("  id: ", a.ID)
	w.text("  initiator: ", a.Initiator)
	w.optional("  policy: ", a.Policy)
	w.source(&a.Source)
	w.time("  until: ", a.Until)
	w.optional("  digest: ", a.Digest)
	w.optional("  approval: ", a.Approval)
	w.trace(a.Trace)
	w.out[at] = '-' // The first line of the element.
}

// id writes a line with an ID, in quotes.
func (w *writer) id(key, id string) {
	_, _, ok := parseID(id)
	w.failed = w.failed || !ok
	w.out = append(append(append(append(w.out, key...), '"'), id...), "\"\n"...)
}

func (w *writer) source(s *v1alpha1.AllowanceSource) {
	w.out = append(w.out, "  source:\n"...)
	w.text("    type: ", string(s.Type))
	w.optional("    name: ", s.Name)
	w.optional("    field: ", s.Field)
	w.optional("    place: ", s.Place)

	if len(s.Also) > 0 {
		w.out = append(w.out, "    also:\n"...)
		for _, place := range s.Also {
			w.text("    - ", place)
		}
	}

	if s.From != "" {
		w.id("    from: ", s.From)
	}
}

func (w *writer) entry(e *v1alpha1.TraceEntry) {
	w.failed = w.failed || len(e.Unknown) > 0

	w.text("- field: ", e.Field)
	w.optional("  place: ", e.Place)
	w.number("  generation: ", e.Generation)
	w.text("  initiator: ", e.Initiator)
	w.trace(e.Trace)
	w.optional("  by: ", e.By)
	w.time("  repaired: ", e.Repaired)
}

func (w *writer) trace(hops []v1alpha1.Hop) {
	if len(hops) == 0 {
		return
	}

	w.out = append(w.out, "  trace:\n"...)

	for i := range hops {
		h := &hops[i]
		w.failed = w.failed || len(h.Unknown) > 0

		w.text("  - kind: ", h.Kind)
		w.namespace(h.Namespace)
		w.text("    name: ", h.Name)
		w.number("    generation: ", h.Generation)

		if h.Request != 0 {
			w.number("    request: ", h.Request)
		}

		w.text("    field: ", h.Field)
		w.attestations(h.Attestations)
	}
}

// namespace writes a line unless there is nothing to say.
func (w *writer) namespace(s *string) {
	switch {
	case s == nil:
	case *s == "":
		w.out = append(w.out, noNamespace...)
	default:
		w.text("    namespace: ", *s)
	}
}

// noNamespace is the line that says of a hop that it is cluster-scoped.
const noNamespace = "    namespace: \"\"\n"

func (w *writer) attestations(m map[string]string) {
	if len(m) == 0 {
		return
	}

	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}

	slices.Sort(keys)

	w.out = append(w.out, "    attestations:\n"...)

	for _, k := range keys {
		w.failed = w.failed || !plain.Is(k)
		w.out = append(w.out, "      "...)
		w.out = append(w.out, k...)
		w.text(": ", m[k])
	}
}

// optional writes a line unless the text is empty.
func (w *writer) optional(key, s string) {
	if s != "" {
		w.text(key, s)
	}
}

func (w *writer) text(key, s string) {
	w.failed = w.failed || !plain.Is(s)
	w.out = append(append(append(w.out, key...), s...), '\n')
}

// time writes a line with a time as metav1.Time does, unless there is none.
func (w *writer) time(key string, t *metav1.Time) {
	if t == nil {
		return
	}

	w.failed = w.failed || t.IsZero() || t.UTC().Year() > maxYear || t.UTC().Year() < 0
	w.out = t.UTC().AppendFormat(append(w.out, key...), `"2006-01-02T15:04:05Z"`)
	w.out = append(w.out, '\n')
}

// maxYear is the last one with four digits.
const maxYear = 9999

func (w *writer) number(key string, n int64) {
	w.out = append(strconv.AppendInt(append(w.out, key...), n, 10), '\n')
}
