// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// maxFieldsNamed limits the fields that a warning lists.
const maxFieldsNamed = 8

// wildcard in a path stands for each field or element.
const wildcard = "*"

// Check checks what the policy says of a kind against the kind's schema, whose
// references are resolved: expressions, and the paths of match and of what is
// allowed of children. What it finds is for a person to read and makes no
// difference to how the policy is evaluated. Without a schema it finds nothing. Params is
// the schema of the policy's paramKind; nil for none.
func (p *Policy) Check(gk schema.GroupKind, s, params *spec.Schema) []v1alpha1.TypeCheckingWarning {
	return p.CheckBelow(gk, s, params, nil)
}

// CheckBelow is the same where the schema of the parents of all that is of the kind is known,
// too; nil where it is not, or they are of several kinds.
func (p *Policy) CheckBelow(gk schema.GroupKind, s, params, parent *spec.Schema) []v1alpha1.TypeCheckingWarning {
	if s == nil || !isObject(s) {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	if IsAbout(&p.spec.Match, gk) {
		match := field.NewPath("spec", "match")

		for i, f := range p.fields {
			if warning := checkMutation(s, f); warning != "" {
				out = append(out, v1alpha1.TypeCheckingWarning{Field: match.Child("fields").Index(i).String(), Warning: warning})
			}
		}

		for i, f := range p.excluded {
			if warning := checkMutation(s, f); warning != "" {
				out = append(out, v1alpha1.TypeCheckingWarning{Field: match.Child("excludeFields").Index(i).String(), Warning: warning})
			}
		}

		out = append(out, p.typeCheck(s, params, parent)...)

		for i, c := range p.capture {
			if warning := checkPath(s, c); warning != "" {
				out = append(out, v1alpha1.TypeCheckingWarning{Field: match.Child("capture").Index(i).String(), Warning: warning})
			}
		}
	}

	return append(out, CheckAllowed(p.spec.Allow, gk, s)...)
}

// CheckAllowed checks the mutations of children of a kind that are allowed
// against the kind's schema. Those that are no paths it leaves out.
func CheckAllowed(allow []v1alpha1.Permission, gk schema.GroupKind, s *spec.Schema) []v1alpha1.TypeCheckingWarning {
	if s == nil || !isObject(s) {
		return nil
	}

	var out []v1alpha1.TypeCheckingWarning

	for i, perm := range allow {
		if !OfChild(perm, gk) {
			continue
		}

		for j, text := range perm.Mutations {
			pattern, err := change.ParsePattern(text)
			if err != nil {
				continue
			}

			if warning := checkMutation(s, pattern); warning != "" {
				at := field.NewPath("spec", "allow").Index(i).Child("mutations").Index(j)
				out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: warning})
			}
		}
	}

	return out
}

func names(group, kind string, gk schema.GroupKind) bool {
	return kind == gk.Kind && (group == "" || group == gk.Group)
}

// checkMutation says what is wrong with the path of a change.
func checkMutation(s *spec.Schema, p change.Pattern) string {
	switch {
	case p.Pseudo():
		return ""
	case p.Segments()[0].Field == "status":
		return fmt.Sprintf("%s: changes of status are reports of controllers, which no policy is asked about", p)
	default:
		return checkPath(s, p)
	}
}

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
	name := segmentName(path[n])
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

// segmentName is the key that a segment stands for: digits are one too.
func segmentName(s fieldpath.Segment) string {
	if s.Type == fieldpath.SegmentIndex {
		return strconv.FormatUint(uint64(s.Index), 10)
	}

	return s.Field
}

// Alike are those of some names that another one was probably meant to be.
func Alike(name string, names []string) []string {
	out := make([]string, 0, 1)
	least := max(1, len(name)/3)

	for _, n := range names {
		switch d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n)); {
		case d < least:
			out, least = append(out[:0], n), d
		case d == least:
			out = append(out, n)
		}
	}

	return out
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
