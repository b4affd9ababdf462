// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// exempt is what becomes of a change that needs nobody's leave, or is none.
const exempt = "Exempt"

// change is what is decided otherwise about a field, or about the whole request.
type change struct {
	// key is the same of changes that are alike.
	key changeKey
	// because says why it is decided so now, of this one.
	because string
	// field with its indices.
	field  string
	record *decisionlog.Decision
}

// changeKey is what changes have in common that are alike.
type changeKey struct {
	group, kind string
	// field without indices; empty for the whole request.
	field         string
	before, after string
	// by is what allows it now, or what it lacks.
	by string
	// masked is true where credentials are masked in what was decided.
	masked bool
}

// comparison compares what was decided with what is.
type comparison struct {
	record  *decisionlog.Decision
	was, is *decisionlog.Outcome
}

// changes are the fields of which something else is decided, or the whole request, in
// order; none where only words differ.
func (c *comparison) changes() []change {
	was, is := byField(c.was), byField(c.is)

	var fields []string

	for _, list := range [][]decisionlog.Finding{c.was.Findings, c.is.Findings} {
		for i := range list {
			fields = append(fields, list[i].Field)
		}
	}

	slices.Sort(fields)

	var out []change

	for _, field := range slices.Compact(fields) {
		if before, after := stateOf(c.was, was[field]), stateOf(c.is, is[field]); before != after {
			out = append(out, c.change(field, before, after, is[field]))
		}
	}

	if len(out) == 0 && (c.was.Outcome != c.is.Outcome || c.was.Do != c.is.Do) {
		out = append(out, c.change("", string(c.was.Outcome), string(c.is.Outcome), nil))
	}

	return out
}

func byField(o *decisionlog.Outcome) map[string]*decisionlog.Finding {
	out := make(map[string]*decisionlog.Finding, len(o.Findings))
	for i := range o.Findings {
		out[o.Findings[i].Field] = &o.Findings[i]
	}

	return out
}

// stateOf is what becomes of a change: Allowed, Ungoverned, Exempt, or where it is unallowed
// what is done about that.
func stateOf(o *decisionlog.Outcome, f *decisionlog.Finding) string {
	switch {
	case f == nil:
		return exempt
	case f.Verdict == finding.Unallowed:
		return string(o.Outcome)
	default:
		return string(f.Verdict)
	}
}

// indices of lists in a field path.
var indices = regexp.MustCompile(`\[\d+\]`)

func (c *comparison) change(field, before, after string, f *decisionlog.Finding) change {
	gk, _, _ := about(c.record)
	out := change{field: field, record: c.record}
	out.key = changeKey{
		group: gk.Group, kind: gk.Kind, field: indices.ReplaceAllString(field, "[*]"), before: before, after: after, masked: c.record.Masked,
	}

	switch {
	case f == nil:
		out.because = c.is.Reason
	case f.Verdict == finding.Allowed:
		out.because = allowedBy(f)
		out.key.by = out.because
	case f.Verdict == finding.Unallowed:
		out.because, out.key.by = lacking(f)
		out.key.by += strings.Join(c.is.Enforcements, ",")
	default:
		out.because = "no policy is about it"
	}

	return out
}

// allowedBy says what allows a change.
func allowedBy(f *decisionlog.Finding) string {
	switch {
	case f.Policy == "":
		return fmt.Sprintf("rule %s", f.Rule)
	case f.Rule == finding.RuleUpgrade:
		return fmt.Sprintf("UpgradeAllowance %q", f.Policy)
	case f.Rule == finding.RuleException:
		return fmt.Sprintf("exception %q", f.Policy)
	default:
		return fmt.Sprintf("policy %q", f.Policy)
	}
}

// lacking says what a change lacks, and what is alike of that whatever objects, users and
// values the text names.
func lacking(f *decisionlog.Finding) (text, alike string) {
	texts, parts := make([]string, len(f.Lacks)), make([]string, len(f.Lacks))
	for i, l := range f.Lacks {
		texts[i], parts[i] = l.Text, fmt.Sprintf("%s of %q", l.What, l.Policy)
	}

	return strings.Join(texts, "; "), strings.Join(parts, ", ")
}

// turn is what the whole of it turns into.
func (c *comparison) turn() turn {
	was, is := allowed(c.was), allowed(c.is)

	switch {
	case !was && is:
		return turnAllowed
	case was && !is:
		return turnUnallowed
	default:
		return turnOther
	}
}

// allowed reports whether all of a request was let through that it asks for, and nothing of
// it was unallowed.
func allowed(o *decisionlog.Outcome) bool {
	return (o.Do == decision.Allow || o.Do == decision.Hold) &&
		!slices.ContainsFunc(o.Findings, func(f decisionlog.Finding) bool { return f.Verdict == finding.Unallowed })
}

// maxWords limits what is quoted of words that differ.
const maxWords = 200

// wording is a change of nothing but words: the first part of the outcome that differs.
func (c *comparison) wording() change {
	was, is := reflect.ValueOf(*c.was), reflect.ValueOf(*c.is)
	state := string(c.is.Outcome)

	out := c.change("", state, state, nil)

	for i := range was.NumField() {
		if a, b := was.Field(i).Interface(), is.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			part, _, _ := strings.Cut(was.Type().Field(i).Tag.Get("json"), ",")
			out.because = fmt.Sprintf("%s is %s, and was %s", part, quote(b), quote(a))
			out.key.by = part

			break
		}
	}

	out.because = cmp.Or(out.because, "it is written otherwise")

	return out
}

func quote(v any) string {
	text := fmt.Sprintf("%+v", v)
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "..."
	}

	return text
}
