// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// managedFields are what records are without, but for those of the old object.
const managedFields = "managedFields"

// expression is one that decides. By its text it is known which fields it may read.
type expression struct {
	text string
	// of is what its policy matches; nil of a binding or an Enforcement.
	of *v1alpha1.Match
}

// expressionsOf are those of what is in force.
func expressionsOf(o inforce.Objects) []expression {
	var out []expression

	for i := range o.Policies {
		m := &o.Policies[i].Spec.Match
		for _, w := range policy.Expressions(m) {
			out = append(out, expression{w.Text, m})
		}
	}

	for i := range o.Bindings {
		for _, c := range o.Bindings[i].Spec.MatchConditions {
			out = append(out, expression{text: c.Expression})
		}
	}

	for i := range o.Enforcements {
		for _, c := range o.Enforcements[i].Spec.MatchConditions {
			out = append(out, expression{text: c.Expression})
		}
	}

	return out
}

// reads reports whether it may read a field of a name, in a decision about a kind.
func (e *expression) reads(gk schema.GroupKind, field string) bool {
	return field != "" && (e.of == nil || policy.IsAbout(e.of, gk)) && mentions(e.text, field)
}

// mentions reports whether a word is in a text.
func mentions(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}

		start, end := from+i, from+i+len(word)
		if (start == 0 || !identifies(text[start-1])) && (end == len(text) || !identifies(text[end])) {
			return true
		}

		from = start + 1
	}
}

// identifies reports whether identifiers have a byte.
func identifies(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// reads reports whether what decides now may read a field of a name.
func (s *sets) reads(gk schema.GroupKind, field string) bool {
	return slices.ContainsFunc(s.expressions, func(e expression) bool { return e.reads(gk, field) })
}

// maskedIn are the names of fields of which values are masked in a record, in order.
func maskedIn(d *decisionlog.Decision) []string {
	found := map[string]bool{}

	for _, o := range []decisionlog.Object{d.Old, d.New, d.Parent, d.Namespace, d.Options} {
		noteMasked(found, "", map[string]any(o))
	}

	for i := range d.Parameters {
		for _, o := range d.Parameters[i].Found {
			noteMasked(found, "", map[string]any(o))
		}
	}

	for key, values := range d.User.Extra {
		for _, v := range values {
			noteMasked(found, key, v)
		}
	}

	return slices.Sorted(maps.Keys(found))
}

// noteMasked notes the names of fields that are masked in a value, which is that of a field.
func noteMasked(found map[string]bool, field string, v any) {
	switch t := v.(type) {
	case map[string]any:
		for key, e := range t {
			noteMasked(found, key, e)
		}
	case []any:
		for _, e := range t {
			noteMasked(found, field, e)
		}
	case string:
		if strings.HasPrefix(t, strings.TrimSuffix(mask.Text, ")")) {
			found[field] = true
		}
	}
}
