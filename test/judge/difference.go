// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is a part of a decision that is another one than at the baseline.
type Difference struct {
	// In is the case of the corpus, as corpus/DIRECTORY/NAME, or the object of the log, as
	// log/PART/OPERATION/KIND.GROUP#LINE.
	In string
	// Part of the decision: outcome, action, do, enforcements, forged, shadowed, held; verdict, rule, policy,
	// initiator and reasons of a finding; annotation KEY and stored of what is written; move, policies and
	// so on of a gate; KEY of upkeep; case where it is gone, unknown where the log has no answer.
	Part string
	// Field that the part is about; empty for the whole request.
	Field string
	// From is the value at the baseline and To the one now: a text as it is, anything else as JSON; none
	// where there is nothing. The verdict of a finding that the other decision does not have is with its
	// rule, policy and initiator.
	From, To string
}

// none is the value of a part that is not there.
const none = "none"

// parts are the parts of a decision, by what they are about.
type parts map[about]string

// about is a part of a decision, and the field that it is about.
type about struct{ part, field string }

// Compare returns the differences between a decision at the baseline and now, by part and field.
func Compare(in string, from, to Judged) []Difference {
	was, is := partsOf(from), partsOf(to)
	if v, ok := is[about{part: partCase}]; ok {
		return []Difference{{In: in, Part: partCase, From: none, To: v}} // The rest is no news.
	}

	keys := slices.Collect(maps.Keys(was))
	for key := range is {
		if _, ok := was[key]; !ok {
			keys = append(keys, key)
		}
	}

	slices.SortFunc(keys, func(a, b about) int { return slices.Compare([]string{a.part, a.field}, []string{b.part, b.field}) })

	var out []Difference

	for _, key := range keys {
		a, b := valueOf(was, key), valueOf(is, key)
		if a == b || key.part != partVerdict && (lone(was, is, key.field) || lone(is, was, key.field)) {
			continue
		}

		if key.part == partVerdict {
			a, b = was.whole(key.field, a, is), is.whole(key.field, b, was)
		}

		out = append(out, Difference{In: in, Part: key.part, Field: key.field, From: a, To: b})
	}

	return out
}

// Parts that the code names.
const (
	partVerdict = "verdict"
	partRule    = "rule"
	partReasons = "reasons"
	partHeld    = "held"
	partCase    = "case"
)

// lone reports whether a field has a finding in one decision alone: the rest about it is no news then.
func lone(a, b parts, field string) bool {
	_, here := a[about{partVerdict, field}]
	_, there := b[about{partVerdict, field}]

	return field != "" && here && !there
}

// whole is a verdict, with what it is by where the other decision has none on the field.
func (p parts) whole(field, verdict string, other parts) string {
	if !lone(p, other, field) {
		return verdict
	}

	out := []string{verdict}

	for _, part := range []string{partRule, "policy", "initiator"} {
		if v, ok := p[about{part, field}]; ok {
			out = append(out, part+" "+v)
		}
	}

	return strings.Join(out, ", ")
}

func valueOf(p parts, key about) string {
	if v, ok := p[key]; ok {
		return v
	}

	return none
}

// partsOf takes a decision apart.
func partsOf(j Judged) parts {
	out := parts{}
	out.set("do", "", string(j.Do))

	if len(j.Unknown) > 0 {
		out.set("unknown", "", j.Unknown)
	}

	for key, value := range j.Decided {
		switch key {
		case "findings":
			for _, f := range mappings(value) {
				out.finding(f)
			}
		case partHeld:
			for _, h := range mappings(value) {
				out.set(partHeld, fieldOf(h), without(h, keyField))
			}
		default:
			out.set(key, "", value)
		}
	}

	out.patch(j.Patched)

	return out
}

const keyField = "field"

// finding takes a finding apart.
func (p parts) finding(f map[string]any) {
	field := fieldOf(f)
	p.set(partVerdict, field, f[partVerdict])

	for _, part := range []string{partRule, "policy", "initiator"} {
		if v, ok := f[part]; ok {
			p.set(part, field, v)
		}
	}

	if lacks := f["lacks"]; lacks != nil {
		p.set(partReasons, field, lacks)
	}
}

// patch takes a merge patch apart.
func (p parts) patch(patch map[string]any) {
	meta, _ := patch["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)

	for key, value := range annotations {
		if value == nil {
			value = "removed"
		}

		p.set("annotation "+key, "", value)
	}

	rest := without(patch, "metadata")
	if meta = without(meta, "annotations"); len(meta) > 0 {
		rest["metadata"] = meta
	}

	if len(rest) > 0 {
		p.set("stored", "", rest)
	}
}

// set sets a part: a text as it is, anything else as JSON.
func (p parts) set(part, field string, v any) {
	key := about{part, field}
	for n := 2; p[key] != ""; n++ { // A request may have two findings on one field.
		key.field = fmt.Sprintf("%s (%d)", field, n)
	}

	if text, ok := v.(string); ok {
		p[key] = text

		return
	}

	raw, err := json.Marshal(v)
	if err != nil {
		raw = fmt.Appendf(nil, "%v", v) // It came of JSON.
	}

	p[key] = string(raw)
}

func fieldOf(m map[string]any) string {
	field, _ := m[keyField].(string)

	return field
}

// without is a mapping without a key.
func without(m map[string]any, key string) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}

	delete(out, key)

	return out
}

// mappings are the elements of a list that are mappings.
func mappings(list any) []map[string]any {
	all, _ := list.([]any)
	out := make([]map[string]any, 0, len(all))

	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}

	return out
}
