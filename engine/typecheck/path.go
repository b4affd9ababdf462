// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// maxFieldsNamed limits the fields that a warning lists.
const maxFieldsNamed = 8

// wildcard in a path stands for each field or element.
const wildcard = "*"

// checkPath says what is wrong with a path; empty where nothing is, or where the
// schema does not say.
func checkPath(s *spec.Schema, p change.Pattern) string {
	s = withObjectMeta(s)

	n, why := wrong(s, p, 0)
	if why == "" {
		return ""
	}

	if below, err := change.ParsePattern("spec." + p.String()); n == 0 && err == nil {
		if _, none := wrong(s, below, 0); none == "" && s.Properties["spec"].Type != nil {
			why = fmt.Sprintf("there is no such field; did you mean %s?", above(below, len(below.Segments())))
		}
	}

	return fmt.Sprintf("%s: %s", above(p, len(p.Segments())), why)
}

// wrong finds the first segment of a path, from one on, that a schema has no
// place for, and says why; empty where there is none.
func wrong(s *spec.Schema, p change.Pattern, n int) (at int, why string) {
	path := p.Segments()
	if n == len(path) || untyped(s) {
		return n, ""
	}

	if isSet(s, "x-kubernetes-embedded-resource") {
		s = withObjectMeta(s)
	}

	segment := path[n]
	all := segment.Type == fieldpath.SegmentField && segment.Field == wildcard
	prefix, isPrefix := p.Prefix(n)

	switch {
	case isObject(s) && isPrefix && s.AdditionalProperties == nil:
		return wrongPrefix(s, p, n, prefix)
	case isObject(s) && all && len(s.Properties) > 0 && !isOpen(s):
		return wrongEverywhere(s, p, n)
	case isObject(s):
		return wrongField(s, p, n)
	case s.Type.Contains("array"):
		if !all && segment.Type == fieldpath.SegmentField {
			return n, fmt.Sprintf("%s is a list: write [*] for all of its elements, or an index", above(p, n))
		}

		if s.Items == nil || s.Items.Schema == nil {
			return n, ""
		}

		return wrong(s.Items.Schema, p, n+1)
	default:
		return n, fmt.Sprintf("%s is of type %s, which has no fields", above(p, n), s.Type[0])
	}
}

// untyped reports whether a schema leaves open what type a value has.
func untyped(s *spec.Schema) bool {
	return len(s.Type) != 1 || s.Format == "int-or-string" || isSet(s, "x-kubernetes-int-or-string") ||
		isObject(s) && len(s.Properties) == 0 && s.AdditionalProperties == nil
}

// wrongEverywhere is [wrong] for a wildcard that stands for every field: one that
// has the rest of the path is enough.
func wrongEverywhere(s *spec.Schema, p change.Pattern, n int) (at int, why string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		if at, why = wrong(&child, p, n+1); why == "" {
			return at, ""
		}
	}

	return at, why
}

// wrongPrefix is [wrong] for a prefix of names of fields: one that has the rest of the path is enough.
func wrongPrefix(s *spec.Schema, p change.Pattern, n int, prefix string) (at int, why string) {
	if isOpen(s) {
		return n, ""
	}

	at, why = n, fmt.Sprintf("no field of %s begins with %s", above(p, n), prefix)

	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if child := s.Properties[name]; strings.HasPrefix(name, prefix) {
			if at, why = wrong(&child, p, n+1); why == "" {
				return at, ""
			}
		}
	}

	return at, why
}

func wrongField(s *spec.Schema, p change.Pattern, n int) (at int, why string) {
	path := p.Segments()
	name := path[n].Key()
	child, ok := s.Properties[name]

	_, isPrefix := p.Prefix(n)

	switch more := s.AdditionalProperties; {
	case ok:
		return wrong(&child, p, n+1)
	case !isPrefix && name != wildcard && strings.HasSuffix(name, wildcard):
		return n, fmt.Sprintf("there is no such field, and outside of brackets * is a part of its name; did you mean %s[%s]?", path[:n], name)
	case more != nil && more.Schema != nil:
		return wrong(more.Schema, p, n+1)
	case isOpen(s):
		return n, ""
	}

	fields := slices.Sorted(maps.Keys(s.Properties))
	if like := Alike(name, fields); len(like) > 0 {
		for i := range like {
			like[i] = append(slices.Clone(path[:n]), fieldpath.Field(like[i])).String()
		}

		return n, fmt.Sprintf("there is no such field; did you mean %s?", strings.Join(like, " or "))
	}

	said := strings.Join(fields[:min(len(fields), maxFieldsNamed)], ", ")
	if more := len(fields) - maxFieldsNamed; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}

	return n, fmt.Sprintf("there is no such field; %s has %s", above(p, n), said)
}

// above is what the first segments of a path lead to, for a person.
func above(p change.Pattern, n int) string {
	out := ""

	for i, s := range p.Segments()[:n] {
		part := change.Path{s}.String()
		if _, ok := p.Prefix(i); ok {
			part = "[" + s.Field + "]"
		}

		if out != "" && part[0] != '[' {
			out += "."
		}

		out += part
	}

	return cmp.Or(out, "the object")
}
