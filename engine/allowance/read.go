// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/internal/plain"
)

// reader reads the plain shape of annotations, line by line. It fails for good
// at the first thing that is not plain, or not in its order. What it returns
// shares the annotation's memory.
type reader struct{ Reader plain.Reader }

// readPlain reads a list of allowances or trace entries, or a gate's record, into
// out; false where
// it is not of the plain shape.
func readPlain(text string, out any) bool {
	r := reader{plain.Reader{Rest: text}}

	switch list := out.(type) {
	case *[]v1alpha1.Allowance:
		*list = make([]v1alpha1.Allowance, 0, elements(text))
		for r.Reader.More() {
			*list = append(*list, r.allowance())
		}
	case *[]v1alpha1.TraceEntry:
		*list = make([]v1alpha1.TraceEntry, 0, elements(text))
		for r.Reader.More() {
			*list = append(*list, r.entry())
		}
	case *v1alpha1.GateRecord:
		*list = r.gate()
		r.Reader.Failed = r.Reader.Failed || r.Reader.Rest != ""
	default:
		return false
	}

	return !r.Reader.Failed && strings.HasSuffix(text, "\n")
}

// gate reads a gate's record, whose allowances are indented as any list is.
func (r *reader) gate() v1alpha1.GateRecord {
	rec := v1alpha1.GateRecord{V: int(r.Reader.Number("v: ")), State: v1alpha1.GateState(r.Reader.Text("state: "))}

	if r.Reader.Skip("actions:\n") {
		for r.Reader.Peek("- ") {
			rec.Actions = append(rec.Actions, r.Reader.Text("- "))
		}

		r.Reader.Failed = r.Reader.Failed || len(rec.Actions) == 0
	}

	rec.Generation = r.Reader.Number("generation: ")
	rec.Since = r.time("since: ")

	if r.Reader.Peek("consumed: ") {
		rec.Consumed = r.Reader.Number("consumed: ")
	}

	rec.Creating = r.Reader.Skip("creating: true\n")
	rec.Unacknowledged = r.Reader.Skip("unacknowledged: true\n")

	if r.Reader.Skip("allowances:\n") {
		for r.Reader.More() {
			rec.Allowances = append(rec.Allowances, r.allowance())
		}

		r.Reader.Failed = r.Reader.Failed || len(rec.Allowances) == 0
	}

	return rec
}

// time reads a line with a time as Kubernetes writes it, in quotes.
func (r *reader) time(key string) metav1.Time {
	const quoted = len(`"2006-01-02T15:04:05Z"`)

	if !r.Reader.Skip(key) || len(r.Reader.Rest) <= quoted || r.Reader.Rest[0] != '"' || r.Reader.Rest[quoted-1] != '"' ||
		r.Reader.Rest[quoted] != '\n' {
		r.Reader.Failed = true

		return metav1.Time{}
	}

	t, err := time.Parse("2006-01-02T15:04:05Z", r.Reader.Rest[1:quoted-1])
	r.Reader.Failed = r.Reader.Failed || err != nil
	r.Reader.Rest = r.Reader.Rest[quoted+1:]

	return metav1.NewTime(t.Local()) //nolint:gosmopolitan // As metav1.Time reads it.
}

// elements is how many elements a block list has at most.
func elements(text string) int {
	const shortest = len("- kind: a\n  generation: 1\n  initiator: a\n")

	return min(1+strings.Count(text, "\n- "), 1+len(text)/shortest)
}

func (r *reader) allowance() v1alpha1.Allowance {
	var a v1alpha1.Allowance

	first := true

	a.APIGroup = r.element("apiGroup: ", &first)
	a.Kind = r.element("kind: ", &first)
	a.Relation = v1alpha1.Relation(r.element("relation: ", &first))
	a.Mutation = r.element("mutation: ", &first)

	if !first && r.Reader.Skip("  mutations:\n") {
		for r.Reader.Peek("  - ") {
			a.Mutations = append(a.Mutations, r.Reader.Text("  - "))
		}

		r.Reader.Failed = r.Reader.Failed || len(a.Mutations) == 0
	}

	r.Reader.Failed = r.Reader.Failed || first // It has a kind or a relation.
	a.Generation = r.Reader.Number("  generation: ")
	a.ID = r.id("  id: ")
	a.Initiator = r.Reader.Text("  initiator: ")
	a.Policy = r.Reader.Optional("  policy: ")
	a.Source = r.source()

	a.Until = r.optionalTime("  until: ")

	a.Digest = r.Reader.Optional("  digest: ")
	a.Approval = r.Reader.Optional("  approval: ")
	a.Trace = r.trace()

	return a
}

// id reads a line with an ID, in quotes: it is a number otherwise.
func (r *reader) id(key string) string {
	if !r.Reader.Skip(key + "\"") {
		r.Reader.Failed = true

		return ""
	}

	id, rest, ok := strings.Cut(r.Reader.Rest, "\"\n")
	_, _, is := parseID(id)
	r.Reader.Failed, r.Reader.Rest = r.Reader.Failed || !ok || !is, rest

	return id
}

func (r *reader) source() v1alpha1.AllowanceSource {
	if !r.Reader.Skip("  source:\n") {
		r.Reader.Failed = true

		return v1alpha1.AllowanceSource{}
	}

	out := v1alpha1.AllowanceSource{
		Type: v1alpha1.SourceType(r.Reader.Text("    type: ")), Name: r.Reader.Optional("    name: "), Field: r.Reader.Optional("    field: "),
		Place: r.Reader.Optional("    place: "),
	}

	if r.Reader.Skip("    also:\n") {
		for r.Reader.Peek("    - ") {
			out.Also = append(out.Also, r.Reader.Text("    - "))
		}

		r.Reader.Failed = r.Reader.Failed || len(out.Also) == 0
	}

	if r.Reader.Peek("    from: ") {
		out.From = r.id("    from: ")
	}

	return out
}

// element reads an optional line that may be the first one of an element.
func (r *reader) element(key string, first *bool) string {
	prefix := "  "
	if *first {
		prefix = "- "
	}

	if !r.Reader.Peek(prefix) || !strings.HasPrefix(r.Reader.Rest[len(prefix):], key) {
		return ""
	}

	r.Reader.Rest = r.Reader.Rest[len(prefix)+len(key):]
	*first = false

	return r.Reader.Value()
}

func (r *reader) entry() v1alpha1.TraceEntry {
	return v1alpha1.TraceEntry{
		Field:      r.Reader.Text("- field: "),
		Place:      r.Reader.Optional("  place: "),
		Generation: r.Reader.Number("  generation: "),
		Initiator:  r.Reader.Text("  initiator: "),
		Trace:      r.trace(),
		By:         r.Reader.Optional("  by: "),
		Repaired:   r.optionalTime("  repaired: "),
	}
}

// optionalTime reads a line that may not be there.
func (r *reader) optionalTime(key string) *metav1.Time {
	if !r.Reader.Peek(key) {
		return nil
	}

	out := r.time(key)

	return &out
}

func (r *reader) trace() []v1alpha1.Hop {
	if !r.Reader.Skip("  trace:\n") {
		return nil
	}

	const usual = 3 // Claim, XR, managed resource.

	hops := make([]v1alpha1.Hop, 0, usual)

	for r.Reader.Peek("  - ") {
		hops = append(hops, v1alpha1.Hop{
			Kind:         r.Reader.Text("  - kind: "),
			Namespace:    r.namespace(),
			Name:         r.Reader.Text("    name: "),
			Generation:   r.Reader.Number("    generation: "),
			Request:      r.Reader.Count("    request: "),
			Field:        r.Reader.Text("    field: "),
			Attestations: r.attestations(),
		})
	}

	r.Reader.Failed = r.Reader.Failed || len(hops) == 0

	return hops
}

// namespace reads a line that may be absent, or say that there is none.
func (r *reader) namespace() *string {
	var s string

	if !r.Reader.Skip(noNamespace) {
		if !r.Reader.Skip("    namespace: ") {
			return nil
		}

		s = r.Reader.Value()
	}

	return &s
}

func (r *reader) attestations() map[string]string {
	if !r.Reader.Skip("    attestations:\n") {
		return nil
	}

	const indent = "      "

	out := map[string]string{}

	for r.Reader.Peek(indent) {
		line, _, _ := strings.Cut(r.Reader.Rest[len(indent):], "\n")

		key, _, ok := strings.Cut(line, ": ")
		if _, twice := out[key]; !ok || twice || !plain.Is(key) {
			r.Reader.Failed = true

			break
		}

		r.Reader.Rest = r.Reader.Rest[len(indent)+len(key)+len(": "):]
		out[key] = r.Reader.Value()
	}

	r.Reader.Failed = r.Reader.Failed || len(out) == 0

	return out
}
