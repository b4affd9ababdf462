// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/test/judge"
)

// allowed is a decision: of two changes one is allowed, and the other one held.
func allowed() judge.Judged {
	return judge.Judged{
		Do: "Hold",
		Decided: map[string]any{
			"outcome": "Held", "action": "Hold",
			"findings": []any{
				map[string]any{"field": "spec.size", "verdict": "Allowed", "rule": "Initiate", "policy": "sizes", "initiator": "hans"},
				map[string]any{"field": "spec.color", "verdict": "Unallowed", "lacks": []any{map[string]any{"what": "Subject", "policy": "colors"}}},
			},
			"held": []any{map[string]any{"field": "spec.color", "from": "red", "to": "blue"}},
		},
		Patched: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"kausality.io/trace": "hans", "kausality.io/edits": nil}},
			"spec":     map[string]any{"color": "red"},
		},
	}
}

// as is a value of a type.
func as[T any](t *testing.T, v any) T {
	t.Helper()

	out, ok := v.(T)
	if !ok {
		t.Fatalf("%v is no %T", v, out)
	}

	return out
}

func TestEachPartOfADecisionIsCompared(t *testing.T) {
	findings := func(j judge.Judged) []any { return as[[]any](t, j.Decided["findings"]) }
	finding := func(j judge.Judged, i int) map[string]any { return as[map[string]any](t, findings(j)[i]) }
	patched := func(j judge.Judged) map[string]any {
		return as[map[string]any](t, as[map[string]any](t, j.Patched["metadata"])["annotations"])
	}

	cases := map[string]struct {
		reason string
		change func(j *judge.Judged)
		want   []judge.Difference
	}{
		"nothing": {reason: "The same decision has no difference.", change: func(*judge.Judged) {}},
		"do": {
			reason: "What is done is compared.", change: func(j *judge.Judged) { j.Do = "Deny" },
			want: []judge.Difference{{Part: "do", From: "Hold", To: "Deny"}},
		},
		"outcome": {
			reason: "So is what it comes to.", change: func(j *judge.Judged) { j.Decided["outcome"] = "Denied" },
			want: []judge.Difference{{Part: "outcome", From: "Held", To: "Denied"}},
		},
		"action": {
			reason: "So is the action, where there is none any more.", change: func(j *judge.Judged) { delete(j.Decided, "action") },
			want: []judge.Difference{{Part: "action", From: "Hold", To: "none"}},
		},
		"verdict": {
			reason: "So is each verdict.", change: func(j *judge.Judged) { finding(*j, 0)["verdict"] = "Unallowed" },
			want: []judge.Difference{{Part: "verdict", Field: "spec.size", From: "Allowed", To: "Unallowed"}},
		},
		"rule, policy, initiator": {
			reason: "So is who allowed it, and by what.",
			change: func(j *judge.Judged) {
				f := finding(*j, 0)
				f["rule"], f["policy"], f["initiator"] = "Allowance", "others", "anna"
			},
			want: []judge.Difference{
				{Part: "initiator", Field: "spec.size", From: "hans", To: "anna"},
				{Part: "policy", Field: "spec.size", From: "sizes", To: "others"},
				{Part: "rule", Field: "spec.size", From: "Initiate", To: "Allowance"},
			},
		},
		"reasons": {
			reason: "So are the reasons.", change: func(j *judge.Judged) { finding(*j, 1)["lacks"] = []any{} },
			want: []judge.Difference{{Part: "reasons", Field: "spec.color", From: `[{"policy":"colors","what":"Subject"}]`, To: "[]"}},
		},
		"finding": {
			reason: "A finding that is gone is one difference.", change: func(j *judge.Judged) { j.Decided["findings"] = findings(*j)[1:] },
			want: []judge.Difference{{Part: "verdict", Field: "spec.size", From: "Allowed, rule Initiate, policy sizes, initiator hans", To: "none"}},
		},
		"held": {
			reason: "So is what is held.", change: func(j *judge.Judged) { delete(j.Decided, "held") },
			want: []judge.Difference{{Part: "held", Field: "spec.color", From: `{"from":"red","to":"blue"}`, To: "none"}},
		},
		"annotation": {
			reason: "So is each annotation that is written or removed.",
			change: func(j *judge.Judged) {
				a := patched(*j)
				a["kausality.io/trace"], a["kausality.io/edits"] = "anna", "anna"
			},
			want: []judge.Difference{
				{Part: "annotation kausality.io/edits", From: "removed", To: "anna"},
				{Part: "annotation kausality.io/trace", From: "hans", To: "anna"},
			},
		},
		"stored": {
			reason: "So is what else is written.", change: func(j *judge.Judged) { delete(j.Patched, "spec") },
			want: []judge.Difference{{Part: "stored", From: `{"spec":{"color":"red"}}`, To: "none"}},
		},
		"unknown": {
			reason: "So is what the log has no answer to.", change: func(j *judge.Judged) { j.Unknown = []string{"whether hans may"} },
			want: []judge.Difference{{Part: "unknown", From: "none", To: `["whether hans may"]`}},
		},
		"gone": {
			reason: "A case that is gone is one difference.", change: func(j *judge.Judged) { *j = judge.Gone() },
			want: []judge.Difference{{Part: "case", From: "none", To: "gone"}},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := allowed()
			tc.change(&is)

			if diff := cmp.Diff(tc.want, judge.Compare("", allowed(), is)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestADifferenceFitsAClassOrIsReported(t *testing.T) {
	const entry = "{why: Because., by: REDESIGN.md section 2, part: rule, count: 1, "

	cases := map[string]struct {
		reason, changed string
		others          int
		unused          []string
	}{
		"none":  {reason: "Without a class each is reported.", changed: "{}", others: 2},
		"one":   {reason: "A class is of one part.", changed: "changes: [" + entry + "from: Initiate, to: Begin}]", others: 1},
		"field": {reason: "It may be of some fields.", changed: "changes: [" + entry + "field: 'spec\\..*'}]", others: 1},
		"whole": {reason: "An expression is of the whole text.", changed: "changes: [" + entry + "from: Init}]", others: 2, unused: []string{"changes[0] (Because.): 0 differences fit it, and its count is 1"}},
		"in":    {reason: "It may be of some cases.", changed: "changes: [" + entry + "in: corpus/edit/.*}]", others: 2, unused: []string{"changes[0] (Because.): 0 differences fit it, and its count is 1"}},
		"more": {
			reason: "It is of so many differences.", others: 1,
			changed: "changes: [{why: Because., by: REDESIGN.md section 2, part: rule, count: 2, field: spec.size}]",
			unused:  []string{"changes[0] (Because.): 1 differences fit it, and its count is 2"},
		},
		"renamed": {
			reason: "A new name is no difference.", changed: "renamed: {rules: {Initiate: Begin}, reasons: {Subject: User}}", others: 0,
		},
		"renamed in vain": {
			reason: "A name that nothing has is reported.", changed: "renamed: {rules: {Begin: Start}}", others: 2,
			unused: []string{"renamed: rules: Begin: no decision at the baseline has it"},
		},
		"renamed as a rule": {
			reason: "Nor is it renamed for another that is.", changed: "renamed: {rules: {Initiate: Begin, Subject: User}, reasons: {Subject: User}}", others: 0,
			unused: []string{"renamed: rules: Subject: no decision at the baseline has it"},
		},
		"merged": {
			reason: "A name of which the baseline has another is reported.", changed: "renamed: {reasons: {User: Subject}}", others: 2,
			unused: []string{"renamed: reasons: User: no decision at the baseline has it"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := judge.ParseChanged([]byte(tc.changed))
			if err != nil {
				t.Fatal(err)
			}

			is := allowed()
			is.Decided["findings"] = []any{
				map[string]any{"field": "spec.size", "verdict": "Allowed", "rule": "Begin", "policy": "sizes", "initiator": "hans"},
				map[string]any{"field": "spec.color", "verdict": "Unallowed", "lacks": []any{map[string]any{"what": "User", "policy": "colors"}}},
			}

			s := c.Sort()
			s.Compare("corpus/policy/two", allowed(), is)

			if len(s.Others) != tc.others || tc.others > 0 != strings.Contains(s.Report(), "corpus/policy/two") {
				t.Errorf("%s\n%d differences are reported, want %d:\n%s", tc.reason, len(s.Others), tc.others, s.Report())
			}

			if diff := cmp.Diff(tc.unused, s.Unused()); diff != "" {
				t.Errorf("%s\nunused, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAClassSaysWhyAndByWhat(t *testing.T) {
	for name, text := range map[string]string{
		"no why":          "changes: [{by: REDESIGN.md, part: rule, count: 1, from: Initiate}]",
		"no by":           "changes: [{why: Because., part: rule, count: 1, from: Initiate}]",
		"no part":         "changes: [{why: Because., by: REDESIGN.md, count: 1, from: Initiate}]",
		"no count":        "changes: [{why: Because., by: REDESIGN.md, part: rule, from: Initiate}]",
		"everything":      "changes: [{why: Because., by: REDESIGN.md, part: rule, count: 1}]",
		"anything":        "changes: [{why: Because., by: REDESIGN.md, part: rule, count: 1, from: '.*'}]",
		"no expression":   "changes: [{why: Because., by: REDESIGN.md, part: rule, count: 1, from: '('}]",
		"an unknown key":  "changes: [{why: Because., by: REDESIGN.md, part: rule, count: 1, form: Initiate}]",
		"renamed nothing": "renamed: {rules: {'': Begin}}",
	} {
		if _, err := judge.ParseChanged([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestANameIsNotRenamedToOneThatThereIs has two rules become one, which is a change of decisions.
func TestANameIsNotRenamedToOneThatThereIs(t *testing.T) {
	c, err := judge.ParseChanged([]byte("renamed: {rules: {Initiate: Allowance}}"))
	if err != nil {
		t.Fatal(err)
	}

	was, is := allowed(), allowed()
	for rule, j := range map[string]*judge.Judged{"Initiate": &was, "Allowance": &is} {
		j.Decided["findings"] = []any{
			map[string]any{"field": "spec.size", "verdict": "Allowed", "rule": rule},
			map[string]any{"field": "spec.color", "verdict": "Allowed", "rule": "Allowance"},
		}
	}

	s := c.Sort()
	s.Compare("corpus/policy/two", was, is)

	if diff := cmp.Diff([]string{"renamed: rules: Initiate: the baseline has Allowance as well"}, s.Unused()); diff != "" || len(s.Others) > 0 {
		t.Errorf("%d others; unused, -want, +got:\n%s", len(s.Others), diff)
	}
}
