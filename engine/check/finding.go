// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
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

// report collects findings.
type report struct{ findings []Finding }

// add adds a finding about a field.
func (r *report) add(item int, rule, at, message, remedy string) {
	r.findings = append(r.findings, Finding{Item: item, Rule: rule, Severity: severityOf(rule), Field: at, Message: message, Remedy: remedy})
}

// addWith adds a finding that is about another object besides.
func (r *report) addWith(item, other int, rule, at, message, remedy string) {
	r.add(item, rule, at, message, remedy)

	last := &r.findings[len(r.findings)-1]
	last.Others = append(last.Others, other)
}

// InvalidFields are errors of validation as findings about an object.
func InvalidFields(item int, rule func(*field.Error) string, errs field.ErrorList) []Finding {
	var r report
	for _, err := range errs {
		r.add(item, rule(err), err.Field, withoutText(err.ErrorBody()), "")
	}

	return r.findings
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

// child reports whether a permission is about children, and not about what is outside.
func child(p v1alpha1.Permission) bool { return p.Relation != v1alpha1.RelationExternal }
