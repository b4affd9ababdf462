// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/internal/plain"
)

// A codec reads or writes the plain shape of annotations, line by line: each record is described once, for both. It fails for good at
// the first thing that is not plain, or, where it reads, not in its order. What it reads shares the annotation's memory.
type codec struct {
	writing bool
	in      plain.Reader
	// dash is how much of the next line is read already, with the dash that begins an element.
	dash int
	out  []byte
}

// readPlain reads a list of allowances or trace entries, or a gate's record, into out; false where it is not of the plain shape.
func readPlain(text string, out any) bool {
	c := codec{in: plain.Reader{Rest: text}}

	switch list := out.(type) {
	case *[]v1alpha1.Allowance:
		*list = make([]v1alpha1.Allowance, 0, elements(text))
		readAll(&c, list, c.allowance)
	case *[]v1alpha1.TraceEntry:
		*list = make([]v1alpha1.TraceEntry, 0, elements(text))
		readAll(&c, list, c.entry)
	case *v1alpha1.GateRecord:
		c.gate(list)
		c.fail(c.in.Rest != "")
	default:
		return false
	}

	return !c.in.Failed && strings.HasSuffix(text, "\n")
}

// readAll reads elements up to the end.
func readAll[T any](c *codec, list *[]T, element func(*T)) {
	for c.in.More() {
		*list = append(*list, *new(T))
		element(&(*list)[len(*list)-1])
	}
}

// elements is how many elements a block list has at most.
func elements(text string) int {
	const shortest = len("- kind: a\n  generation: 1\n  initiator: a\n")

	return min(1+strings.Count(text, "\n- "), 1+len(text)/shortest)
}

// writePlain writes a list of allowances or trace entries as the YAML library does; false where that is not of the plain shape.
func writePlain(v any) (string, bool) {
	c := codec{writing: true}

	switch list := v.(type) {
	case []v1alpha1.Allowance:
		c.grow(len(list), func(i int) int { return len(list[i].Trace) })

		for i := range list {
			c.allowance(&list[i])
		}
	case []v1alpha1.TraceEntry:
		c.grow(len(list), func(i int) int { return len(list[i].Trace) })

		for i := range list {
			c.entry(&list[i])
		}
	default:
		return "", false
	}

	return string(c.out), !c.in.Failed
}

// grow makes room for so many elements, of so many hops each, as they usually are.
func (c *codec) grow(n int, hops func(int) int) {
	const element, hop = 240, 140

	size := n * element
	for i := range n {
		size += hops(i) * hop
	}

	c.out = make([]byte, 0, size)
}

func (c *codec) allowance(a *v1alpha1.Allowance) {
	c.fail(len(a.Unknown) > 0)

	at := c.element("- ")
	c.optional("  apiGroup: ", &a.APIGroup)
	c.optional("  kind: ", &a.Kind)
	c.optional("  relation: ", (*string)(&a.Relation))
	c.optional("  mutation: ", &a.Mutation)
	c.fail(c.dash > 0) // It has a kind or a relation.
	c.texts("  mutations:\n", "  - ", &a.Mutations)
	c.number("  generation: ", &a.Generation)
	c.id("  id: ", &a.ID)
	c.text("  initiator: ", &a.Initiator)
	c.optional("  policy: ", &a.Policy)
	c.source(&a.Source)
	c.optionalTime("  until: ", &a.Until)
	c.optional("  digest: ", &a.Digest)
	c.optional("  approval: ", &a.Approval)
	c.trace(&a.Trace)
	c.end(at)
}

func (c *codec) source(s *v1alpha1.AllowanceSource) {
	c.line("  source:\n")
	c.text("    type: ", (*string)(&s.Type))
	c.optional("    name: ", &s.Name)
	c.optional("    field: ", &s.Field)
	c.optional("    place: ", &s.Place)
	c.texts("    also:\n", "    - ", &s.Also)

	if c.has("    from: ", s.From != "") {
		c.id("    from: ", &s.From)
	}
}

func (c *codec) entry(e *v1alpha1.TraceEntry) {
	c.fail(len(e.Unknown) > 0)

	at := c.element("- ")
	c.text("  field: ", &e.Field)
	c.optional("  place: ", &e.Place)
	c.number("  generation: ", &e.Generation)
	c.text("  initiator: ", &e.Initiator)
	c.trace(&e.Trace)
	c.optional("  by: ", &e.By)
	c.optionalTime("  repaired: ", &e.Repaired)
	c.end(at)
}

func (c *codec) trace(hops *[]v1alpha1.Hop) {
	const head, item, usual = "  trace:\n", "  - ", 3 // Claim, XR, managed resource.

	if !c.has(head, len(*hops) > 0) {
		return
	}

	c.line(head)

	for i := range *hops {
		c.hop(&(*hops)[i])
	}

	if !c.writing {
		*hops = make([]v1alpha1.Hop, 0, usual)
	}

	for !c.writing && c.in.Peek(item) {
		*hops = append(*hops, v1alpha1.Hop{})
		c.hop(&(*hops)[len(*hops)-1])
	}

	c.fail(len(*hops) == 0)
}

func (c *codec) hop(h *v1alpha1.Hop) {
	c.fail(len(h.Unknown) > 0)

	at := c.element("  - ")
	c.text("    kind: ", &h.Kind)
	c.namespace(&h.Namespace)
	c.text("    name: ", &h.Name)
	c.number("    generation: ", &h.Generation)

	if c.has("    request: ", h.Request != 0) {
		c.number("    request: ", &h.Request)
		c.fail(h.Request == 0)
	}

	c.text("    field: ", &h.Field)
	h.Attestations = c.attestations(h.Attestations)
	c.end(at)
}

// gate is a gate's record, whose allowances are indented as any list is. It is only read.
func (c *codec) gate(rec *v1alpha1.GateRecord) {
	rec.V = int(c.in.Number("v: "))
	c.text("state: ", (*string)(&rec.State))
	c.texts("actions:\n", "- ", &rec.Actions)
	c.number("generation: ", &rec.Generation)
	c.time("since: ", &rec.Since)

	if c.has("consumed: ", rec.Consumed != 0) {
		c.number("consumed: ", &rec.Consumed)
	}

	rec.Creating = c.in.Skip("creating: true\n")
	rec.Unacknowledged = c.in.Skip("unacknowledged: true\n")

	if c.in.Skip("allowances:\n") {
		readAll(c, &rec.Allowances, c.allowance)
		c.fail(len(rec.Allowances) == 0)
	}
}

// noNamespace is the line of a hop that says it has none: one through a cluster-scoped object.
const noNamespace = "    namespace: \"\"\n"

// namespace is a line that may be absent, or say that there is none.
func (c *codec) namespace(s **string) {
	none := *s != nil && **s == ""

	switch {
	case c.writing && none:
		c.out = append(c.out, noNamespace...)
	case c.writing && *s != nil:
		c.text("    namespace: ", *s)
	case c.writing:
	case c.in.Skip(noNamespace):
		*s = new(string)
	case c.in.Peek("    namespace: "):
		*s = new(string)
		c.text("    namespace: ", *s)
	}
}

// attestations returns those that it reads, or writes.
func (c *codec) attestations(m map[string]string) map[string]string {
	const head, indent = "    attestations:\n", "      "

	if !c.has(head, len(m) > 0) {
		return m
	}

	c.line(head)

	if c.writing {
		c.writeMap(m, indent)

		return m
	}

	m = map[string]string{}

	for c.in.Peek(indent) {
		line, _, _ := strings.Cut(c.in.Rest[len(indent):], "\n")

		key, _, ok := strings.Cut(line, ": ")
		if _, twice := m[key]; !ok || twice || !plain.Is(key) {
			c.in.Failed = true

			break
		}

		c.in.Rest = c.in.Rest[len(indent)+len(key)+len(": "):]
		m[key] = c.in.Value()
	}

	c.fail(len(m) == 0)

	return m
}

func (c *codec) writeMap(m map[string]string, indent string) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}

	slices.Sort(keys)

	for _, k := range keys {
		c.fail(!plain.Is(k))
		c.out = append(append(c.out, indent...), k...)
		value := m[k]
		c.text(": ", &value)
	}
}

// fail has it fail where something is so.
func (c *codec) fail(is bool) { c.in.Failed = c.in.Failed || is }

// has reports whether a line is there: where it writes, as it is told.
func (c *codec) has(line string, written bool) bool {
	return c.writing && written || !c.writing && c.peek(line)
}

// peek reports whether the rest begins with a line, of which the beginning may be read already.
func (c *codec) peek(line string) bool { return c.in.Peek(line[min(c.dash, len(line)):]) }

// rest is what of the key of a line is not read yet.
func (c *codec) rest(key string) string {
	key, c.dash = key[min(c.dash, len(key)):], 0

	return key
}

// element begins an element of a list, whose first line has the indent of the others but for a dash, and returns where that is to be
// written at the end.
func (c *codec) element(dash string) (at int) {
	if !c.writing {
		c.fail(!c.in.Skip(dash))
		c.dash = len(dash)
	}

	return len(c.out) + len(dash) - len("- ")
}

// end ends an element.
func (c *codec) end(at int) {
	if c.writing {
		c.out[at] = '-'
	}
}

// line is one without a value.
func (c *codec) line(s string) {
	if c.writing {
		c.out = append(c.out, s...)
	} else {
		c.fail(!c.in.Skip(c.rest(s)))
	}
}

func (c *codec) text(key string, s *string) {
	if !c.writing {
		*s = c.in.Text(c.rest(key))

		return
	}

	c.fail(!plain.Is(*s))
	c.out = append(append(append(c.out, key...), *s...), '\n')
}

// optional is a line that is absent where its value is empty.
func (c *codec) optional(key string, s *string) {
	if c.has(key, *s != "") {
		c.text(key, s)
	}
}

// id is a line with an ID, in quotes: it is a number otherwise.
func (c *codec) id(key string, s *string) {
	if c.writing {
		_, _, ok := parseID(*s)
		c.fail(!ok)
		c.out = append(append(append(append(c.out, key...), '"'), *s...), "\"\n"...)

		return
	}

	c.line(key + "\"")

	id, rest, ok := strings.Cut(c.in.Rest, "\"\n")
	_, _, is := parseID(id)
	c.fail(!ok || !is)
	*s, c.in.Rest = id, rest
}

func (c *codec) number(key string, n *int64) {
	if c.writing {
		c.out = append(strconv.AppendInt(append(c.out, key...), *n, 10), '\n')
	} else {
		*n = c.in.Number(c.rest(key))
	}
}

// texts is a list of texts, which is absent where it is empty.
func (c *codec) texts(head, item string, texts *[]string) {
	if !c.has(head, len(*texts) > 0) {
		return
	}

	c.line(head)

	for i := range *texts {
		c.text(item, &(*texts)[i])
	}

	for !c.writing && c.in.Peek(item) {
		*texts = append(*texts, c.in.Text(item))
	}

	c.fail(len(*texts) == 0)
}

// timeFormat is that of Kubernetes, in quotes.
const timeFormat = `"2006-01-02T15:04:05Z"`

func (c *codec) time(key string, t *metav1.Time) {
	const maxYear = 9999

	if c.writing {
		c.fail(t.IsZero() || t.UTC().Year() > maxYear || t.UTC().Year() < 0)
		c.out = append(t.UTC().AppendFormat(append(c.out, key...), timeFormat), '\n')

		return
	}

	c.line(key)

	text, rest, ok := strings.Cut(c.in.Rest, "\n")
	at, err := time.Parse(timeFormat, text)
	c.fail(!ok || err != nil || len(text) != len(timeFormat))
	*t, c.in.Rest = metav1.NewTime(at.Local()), rest //nolint:gosmopolitan // As metav1.Time reads it.
}

// optionalTime is a line that is absent where there is none.
func (c *codec) optionalTime(key string, t **metav1.Time) {
	if !c.has(key, *t != nil) {
		return
	}

	if !c.writing {
		*t = &metav1.Time{}
	}

	c.time(key, *t)
}
