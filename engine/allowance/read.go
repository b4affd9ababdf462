// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// reader reads the plain shape of annotations, line by line. It fails for good
// at the first thing that is not plain, or not in its order. What it returns
// shares the annotation's memory.
type reader struct {
	rest   string
	failed bool
}

// readPlain reads a list of allowances or trace entries, or a gate's record, into
// out; false where
// it is not of the plain shape.
func readPlain(text string, out any) bool {
	r := reader{rest: text}

	switch list := out.(type) {
	case *[]string:
		for r.more() {
			if r.skip("- '*'\n") {
				*list = append(*list, "*")
			} else {
				*list = append(*list, r.text("- "))
			}
		}
	case *[]v1alpha1.Allowance:
		*list = make([]v1alpha1.Allowance, 0, elements(text))
		for r.more() {
			*list = append(*list, r.allowance())
		}
	case *[]v1alpha1.TraceEntry:
		*list = make([]v1alpha1.TraceEntry, 0, elements(text))
		for r.more() {
			*list = append(*list, r.entry())
		}
	case *v1alpha1.GateRecord:
		*list = r.gate()
		r.failed = r.failed || r.rest != ""
	default:
		return false
	}

	return !r.failed && strings.HasSuffix(text, "\n")
}

// gate reads a gate's record, whose allowances are indented as any list is.
func (r *reader) gate() v1alpha1.GateRecord {
	rec := v1alpha1.GateRecord{State: v1alpha1.GateState(r.text("state: "))}

	if r.skip("actions:\n") {
		for r.peek("- ") {
			rec.Actions = append(rec.Actions, r.text("- "))
		}

		r.failed = r.failed || len(rec.Actions) == 0
	}

	rec.Generation = r.number("generation: ")
	rec.Since = r.time("since: ")

	if r.peek("consumed: ") {
		rec.Consumed = r.number("consumed: ")
	}

	rec.Initial = r.skip("initial: true\n")

	if r.skip("allowances:\n") {
		for r.more() {
			rec.Allowances = append(rec.Allowances, r.allowance())
		}

		r.failed = r.failed || len(rec.Allowances) == 0
	}

	return rec
}

// time reads a line with a time as Kubernetes writes it, in quotes.
func (r *reader) time(key string) metav1.Time {
	const quoted = len(`"2006-01-02T15:04:05Z"`)

	if !r.skip(key) || len(r.rest) <= quoted || r.rest[0] != '"' || r.rest[quoted-1] != '"' || r.rest[quoted] != '\n' {
		r.failed = true

		return metav1.Time{}
	}

	t, err := time.Parse("2006-01-02T15:04:05Z", r.rest[1:quoted-1])
	r.failed = r.failed || err != nil
	r.rest = r.rest[quoted+1:]

	return metav1.NewTime(t.Local()) //nolint:gosmopolitan // As metav1.Time reads it.
}

// elements is how many elements a block list has at most.
func elements(text string) int {
	const shortest = len("- kind: a\n  generation: 1\n  initiator: a\n")

	return min(1+strings.Count(text, "\n- "), 1+len(text)/shortest)
}

func (r *reader) more() bool { return !r.failed && r.rest != "" }

func (r *reader) allowance() v1alpha1.Allowance {
	var a v1alpha1.Allowance

	first := true

	a.APIGroup = r.element("apiGroup: ", &first)
	a.Kind = r.element("kind: ", &first)
	a.Relation = v1alpha1.Relation(r.element("relation: ", &first))
	a.Mutation = r.element("mutation: ", &first)

	if !first && r.skip("  mutations:\n") {
		for r.peek("  - ") {
			a.Mutations = append(a.Mutations, r.text("  - "))
		}

		r.failed = r.failed || len(a.Mutations) == 0
	}

	r.failed = r.failed || first // It has a kind or a relation.
	a.Generation = r.number("  generation: ")
	a.Initiator = r.text("  initiator: ")
	a.Policy = r.optional("  policy: ")

	if r.peek("  until: ") {
		until := r.time("  until: ")
		a.Until = &until
	}

	a.Trace = r.trace()

	return a
}

// element reads an optional line that may be the first one of an element.
func (r *reader) element(key string, first *bool) string {
	prefix := "  "
	if *first {
		prefix = "- "
	}

	if !r.peek(prefix) || !strings.HasPrefix(r.rest[len(prefix):], key) {
		return ""
	}

	r.rest = r.rest[len(prefix)+len(key):]
	*first = false

	return r.value()
}

func (r *reader) entry() v1alpha1.TraceEntry {
	return v1alpha1.TraceEntry{
		Field:      r.text("- field: "),
		Generation: r.number("  generation: "),
		Initiator:  r.text("  initiator: "),
		Trace:      r.trace(),
	}
}

func (r *reader) trace() []v1alpha1.Hop {
	if !r.skip("  trace:\n") {
		return nil
	}

	const usual = 3 // Claim, XR, managed resource.

	hops := make([]v1alpha1.Hop, 0, usual)

	for r.peek("  - ") {
		hops = append(hops, v1alpha1.Hop{
			Kind:         r.text("  - kind: "),
			Namespace:    r.namespace(),
			Name:         r.text("    name: "),
			Generation:   r.number("    generation: "),
			Request:      r.count("    request: "),
			Field:        r.text("    field: "),
			Attestations: r.attestations(),
		})
	}

	r.failed = r.failed || len(hops) == 0

	return hops
}

// namespace reads a line that may be absent, or say that there is none.
func (r *reader) namespace() *string {
	var s string

	if !r.skip(noNamespace) {
		if !r.skip("    namespace: ") {
			return nil
		}

		s = r.value()
	}

	return &s
}

func (r *reader) attestations() map[string]string {
	if !r.skip("    attestations:\n") {
		return nil
	}

	const indent = "      "

	out := map[string]string{}

	for r.peek(indent) {
		line, _, _ := strings.Cut(r.rest[len(indent):], "\n")

		key, _, ok := strings.Cut(line, ": ")
		if _, twice := out[key]; !ok || twice || !plain(key) {
			r.failed = true

			break
		}

		r.rest = r.rest[len(indent)+len(key)+len(": "):]
		out[key] = r.value()
	}

	r.failed = r.failed || len(out) == 0

	return out
}

func (r *reader) peek(prefix string) bool { return !r.failed && strings.HasPrefix(r.rest, prefix) }

func (r *reader) skip(prefix string) bool {
	if !r.peek(prefix) {
		return false
	}

	r.rest = r.rest[len(prefix):]

	return true
}

// text reads a line that has to be there.
func (r *reader) text(key string) string {
	if !r.skip(key) {
		r.failed = true

		return ""
	}

	return r.value()
}

func (r *reader) optional(key string) string {
	if !r.skip(key) {
		return ""
	}

	return r.value()
}

// value reads the rest of a line.
func (r *reader) value() string {
	s, rest, ok := strings.Cut(r.rest, "\n")
	if !ok || !plain(s) {
		r.failed = true
	}

	r.rest = rest

	return s
}

// count reads a line with a decimal number, which is absent where it is 0.
func (r *reader) count(key string) int64 {
	if !r.peek(key) {
		return 0
	}

	n := r.number(key)
	r.failed = r.failed || n == 0

	return n
}

// number reads a line with a decimal number as Go writes it.
func (r *reader) number(key string) int64 {
	if !r.skip(key) {
		r.failed = true

		return 0
	}

	s, rest, ok := strings.Cut(r.rest, "\n")
	r.rest = rest

	n, err := strconv.ParseInt(s, 10, 64)
	if !ok || err != nil || strconv.FormatInt(n, 10) != s { // 007 is octal in YAML.
		r.failed = true
	}

	return n
}
