// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// entry is one struct in an annotation's value that may have fields this
// version does not know: where it stands, by keys and indices, its type, and
// where such fields are kept; nil where there may be none.
type entry struct {
	at   []any
	typ  reflect.Type
	rest *v1alpha1.Unknown
}

// entriesOf returns all entries of a value, outer ones first.
func entriesOf(v any) []entry {
	var out []entry

	switch t := v.(type) {
	case []v1alpha1.Allowance:
		for i := range t {
			out = append(out,
				entry{at: []any{i}, typ: reflect.TypeFor[v1alpha1.Allowance](), rest: &t[i].Unknown},
				entry{at: []any{i, "source"}, typ: reflect.TypeFor[v1alpha1.AllowanceSource]()})
			out = append(out, hopEntries([]any{i, "trace"}, t[i].Trace)...)
		}
	case []v1alpha1.TraceEntry:
		for i := range t {
			out = append(out, entry{at: []any{i}, typ: reflect.TypeFor[v1alpha1.TraceEntry](), rest: &t[i].Unknown})
			out = append(out, hopEntries([]any{i, "trace"}, t[i].Trace)...)
		}
	case []v1alpha1.GateRecord:
		for i := range t {
			out = append(out, within([]any{i}, entriesOf(&t[i]))...)
		}
	case *v1alpha1.GateRecord:
		out = append(out, entry{typ: reflect.TypeFor[v1alpha1.GateRecord](), rest: &t.Unknown})
		out = append(out, within([]any{"allowances"}, entriesOf(t.Allowances))...)
	}

	return out
}

func hopEntries(at []any, hops []v1alpha1.Hop) []entry {
	out := make([]entry, len(hops))
	for i := range hops {
		out[i] = entry{at: []any{i}, typ: reflect.TypeFor[v1alpha1.Hop](), rest: &hops[i].Unknown}
	}

	return within(at, out)
}

func within(at []any, list []entry) []entry {
	for i, e := range list {
		list[i].at = append(append([]any{}, at...), e.at...)
	}

	return list
}

// knows reports whether a struct has a JSON field of that name; like
// encoding/json it does not mind case.
func knows(t reflect.Type, name string) bool {
	for f := range t.Fields() {
		known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if known != "-" && strings.EqualFold(known, name) {
			return true
		}
	}

	return false
}

// readUnknown takes the fields that a value's types do not know from the same
// value decoded without types.
func readUnknown(v, generic any) error {
	for _, e := range entriesOf(v) {
		m, _ := walk(generic, e.at).(map[string]any)

		for name, field := range m {
			if knows(e.typ, name) {
				continue
			}

			if e.rest == nil {
				return fmt.Errorf("field %q: %w", name, errNotUnderstood)
			}

			raw, err := json.Marshal(field)
			if err != nil {
				return fmt.Errorf("cannot keep field %q: %w", name, err)
			}

			if *e.rest == nil {
				*e.rest = v1alpha1.Unknown{}
			}

			(*e.rest)[name] = raw
		}
	}

	return nil
}

// walk returns what is at a place of decoded YAML, nil if there is nothing. It
// does not mind the case of keys, as the types do not.
func walk(v any, at []any) any {
	for _, step := range at {
		switch t := v.(type) {
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(t) {
				return nil
			}

			v = t[i]
		case map[string]any:
			key, _ := step.(string)
			v = nil

			for k, e := range t {
				if strings.EqualFold(k, key) {
					v = e
				}
			}
		default:
			return nil
		}
	}

	return v
}

// writeUnknown adds the fields that a value's types do not know to its YAML,
// each behind those they know, sorted by name.
func writeUnknown(v any, root *goyaml.Node) error {
	for _, e := range entriesOf(v) {
		if e.rest == nil || len(*e.rest) == 0 {
			continue
		}

		more := &goyaml.Node{}

		raw, err := json.Marshal(*e.rest) // Sorted by name.
		if err == nil {
			err = goyaml.Unmarshal(printable(raw), more)
		}

		if err != nil {
			return fmt.Errorf("cannot encode annotation: %w", err)
		}

		if n := nodeAt(root, e.at); n != nil {
			n.Content = append(n.Content, more.Content[0].Content...)
		}
	}

	return nil
}

// nodeAt returns the node at a place, nil if there is none.
func nodeAt(n *goyaml.Node, at []any) *goyaml.Node {
	for _, step := range at {
		next := (*goyaml.Node)(nil)

		switch s := step.(type) {
		case int:
			if s < len(n.Content) {
				next = n.Content[s]
			}
		case string:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == s {
					next = n.Content[i+1]
				}
			}
		}

		if next == nil {
			return nil
		}

		n = next
	}

	return n
}
