// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Finding is one thing that is wrong with an object, or may be.
type Finding struct {
	// Item is the place of the object among those that were given, see [Item].
	Item int
	// Rule that found it, and its severity.
	Rule     string
	Severity Severity
	// Field of the object, as a path; empty for the object as a whole.
	Field string
	// Message says what is wrong, Remedy what helps; empty where the message says that, too.
	Message, Remedy string
	// Others are the places of the objects that the message is about besides.
	Others []int
}

// Item is an object and its place among all that was read, by which who asks knows it
// again.
type Item[T any] struct {
	At     int
	Object T
}

// found is a finding of a rule about a field of the one object that is checked.
func found(rule, at, message string) Finding {
	return Finding{Rule: rule, Severity: severityOf(rule), Field: at, Message: message}
}

// Warnings are findings as the status of an object holds them; nil for none.
func Warnings(list []Finding) []v1alpha1.TypeCheckingWarning {
	if len(list) == 0 {
		return nil
	}

	out := make([]v1alpha1.TypeCheckingWarning, 0, len(list))
	for _, f := range list {
		out = append(out, v1alpha1.TypeCheckingWarning{Field: f.Field, Warning: f.Message})
	}

	return out
}

// Report collects findings.
type Report struct{ Findings []Finding }

// Add adds a finding about a field.
func (r *Report) Add(item int, rule, at, message, remedy string) {
	f := found(rule, at, message)
	f.Item, f.Remedy = item, remedy
	r.Findings = append(r.Findings, f)
}

// AddWith adds a finding that is about another object besides.
func (r *Report) AddWith(item, other int, rule, at, message, remedy string) {
	r.Add(item, rule, at, message, remedy)

	last := &r.Findings[len(r.Findings)-1]
	last.Others = append(last.Others, other)
}

// InvalidFields are errors of validation as findings about an object.
func InvalidFields(item int, rule func(*field.Error) string, errs field.ErrorList) []Finding {
	var r Report
	for _, err := range errs {
		r.Add(item, rule(err), err.Field, withoutText(err.ErrorBody()), "")
	}

	return r.Findings
}

// withoutText is what an error says, in one line and without the text of an expression that
// CEL repeats with a mark below: the finding has its place.
func withoutText(said string) string {
	var out []string

	for line := range strings.Lines(said) {
		line = strings.TrimRight(line, "\n")
		if len(out) > 0 && strings.HasPrefix(line, " | ") {
			continue
		}

		out = append(out, strings.TrimPrefix(line, "ERROR: <input>:"))
	}

	return strings.ReplaceAll(strings.Join(out, "; "), "ERROR: <input>:", "")
}

// AddAll adds what was found in one object.
func (r *Report) AddAll(item int, list []Finding) {
	for _, f := range list {
		f.Item = item
		r.Findings = append(r.Findings, f)
	}
}

// Child reports whether a permission is about children, and not about what is outside.
func Child(p v1alpha1.Permission) bool { return p.Relation != v1alpha1.RelationExternal }

// ofChild reports whether a permission is about children of a kind.
func ofChild(p v1alpha1.Permission, gk schema.GroupKind) bool {
	return Child(p) && NameOf(p).Matches(gk.WithVersion(""))
}

// NameOf is the kind of the children that a permission is about.
func NameOf(p v1alpha1.Permission) kind.Name { return kind.Name{Group: p.APIGroup, Kind: p.Kind} }

// Meets reports whether a match is about a kind that a name may mean.
func Meets(m *v1alpha1.Match, n kind.Name) bool {
	return policy.NamesKind(m, n.Kind) && (n.Group == "" || m.APIGroup == "" || n.Group == m.APIGroup)
}
