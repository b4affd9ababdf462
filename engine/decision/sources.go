// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
)

// A decision is recorded with what it was made by: policies change, and who asks
// later why something was refused or let through asks about those of that moment.

// Governing are the Enforcements that govern the object, in order; not to be
// modified.
func (d *Decision) Governing() []finding.Source { return d.governing }

// foremost are the findings that say most: those on what is not allowed, or else
// on what is.
func (d *Decision) foremost(yield func(*finding.Finding) bool) {
	lead, _ := d.Lead()

	for i := range d.Findings {
		if f := &d.Findings[i]; f.Verdict == lead.Verdict && !yield(f) {
			return
		}
	}
}

// Fields are those that say most of the decision: that are not allowed, or else
// those that are.
func (d *Decision) Fields() []string {
	var out []string
	for f := range d.foremost {
		out = append(out, f.Change.Field)
	}

	return out
}

// Policies are those by which these fields were decided, in order: that allowed
// them, or that would once what they lack is there.
func (d *Decision) Policies() []finding.Source {
	var out []finding.Source

	for f := range d.foremost {
		for _, s := range f.Policies() {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}

	slices.SortFunc(out, finding.CompareSources)

	return out
}

// Cause is why a field is refused.
type Cause struct {
	// Field that is refused; empty for the whole object, which is not to be made or
	// deleted.
	Field string
	// Message says why, for a person, and which generation of which policies and
	// Enforcements says so.
	Message string
}

// Limits of what is reported of one refusal.
const (
	// maxCauses limits the fields that are reported.
	maxCauses = 64
	// maxCauseText limits the bytes of what is missing: it quotes expressions, which
	// may be as long as a policy.
	maxCauseText = 1024
)

// Causes say why each field of a request is refused, the first of them; the last
// one shows how many more there are.
func (d *Decision) Causes() []Cause {
	switch {
	case d.Refusal != nil:
		return []Cause{{Field: annotationField(v1alpha1.AnnotationAllowances), Message: d.Refusal.Error()}}
	case len(d.Forged) > 0:
		out := make([]Cause, len(d.Forged))
		for i, key := range d.Forged {
			out[i] = Cause{Field: annotationField(key), Message: forgedMessage(d.Forged[i : i+1])}
		}

		return out
	}

	var out []Cause

	more := 0

	for _, f := range d.Findings {
		switch {
		case f.Verdict != finding.Unallowed:
		case len(out) == maxCauses:
			more++
		default:
			out = append(out, d.cause(f))
		}
	}

	if more > 0 {
		out = append(out, Cause{Message: fmt.Sprintf("and %d more", more)})
	}

	return out
}

// annotationField is the path of an annotation.
func annotationField(key string) string { return "metadata.annotations[" + key + "]" }

// cause is why a change is refused.
func (d *Decision) cause(f finding.Finding) Cause {
	out := Cause{Field: f.Change.Field, Message: change.Text(f.Missing(), maxCauseText)}
	if out.Field == v1alpha1.MutationCreate || out.Field == v1alpha1.MutationDelete {
		out.Field = ""
	}

	var by []string

	for _, s := range slices.Concat(f.Policies(), d.governing) {
		if s.Generation != 0 {
			by = append(by, fmt.Sprintf("generation %d of %s %q", s.Generation, s.Kind, s.Name))
		}
	}

	if len(by) > 0 {
		out.Message += " (" + strings.Join(by, ", ") + ")"
	}

	return out
}
