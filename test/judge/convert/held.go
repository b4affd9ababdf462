// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// What was held and what was stored though nobody allowed it had a type and an annotation each; both are one type, in one
// annotation.

// formerEdits is the annotation that had what is stored.
const formerEdits = v1alpha1.AnnotationPrefix + "edits"

// former is an entry as it was: of what was held, or of what was stored.
type former struct {
	v1alpha1.HeldChange `json:",inline"`

	User      string   `json:"user"`
	Reason    string   `json:"reason"`
	Where     string   `json:"where"`
	UID       string   `json:"uid"`
	Groups    []string `json:"groups"`
	Approvals int32    `json:"approvals"`
	Since     any      `json:"since"`
}

// entriesOf reads a text with former entries; those of now stay as they are. False where it does not parse.
func entriesOf(text string, stored, composed bool) ([]v1alpha1.HeldChange, bool) {
	var list []former
	if yaml.Unmarshal([]byte(text), &list) != nil {
		return nil, false
	}

	out := make([]v1alpha1.HeldChange, len(list))
	for i, e := range list {
		out[i] = e.now(stored, composed)
	}

	return out, true
}

// now is an entry as it is now.
func (e former) now(stored, composed bool) v1alpha1.HeldChange {
	out := e.HeldChange
	if out.Cause != nil || out.Stored != nil {
		return out
	}

	if e.Reason != "" {
		out.Missing = e.Reason
	}

	if e.User != "" || stored {
		out.Cause = &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: e.User}
		if composed {
			out.Cause.Type = v1alpha1.CauseDrift
		}
	}

	if !stored {
		return out
	}

	if since, ok := e.Since.(string); ok {
		_ = json.Unmarshal(fmt.Appendf(nil, "{\"since\": %q}", since), out.Cause) // Made up, if it is no time.
	}

	out.Stored = &v1alpha1.StoredChange{Where: e.Where, UID: e.UID, Groups: e.Groups, From: out.Digest, Approvals: e.Approvals}
	out.Digest = ""

	return out
}

// heldAnnotations converts the two annotations of an object into one. Composed is true where an XR composes it.
func heldAnnotations(annotations map[string]any, composed bool) {
	held, _ := annotations[v1alpha1.AnnotationHeld].(string)
	edits, edited := annotations[formerEdits].(string)

	if held == "" && !edited {
		return
	}

	list, ok := entriesOf(held, false, composed)
	stored, also := entriesOf(edits, true, composed)

	delete(annotations, formerEdits)

	switch {
	case !ok:
	case !also:
		annotations[v1alpha1.AnnotationHeld] = edits // It stays what cannot be read.
	default:
		already := slices.DeleteFunc(slices.Clone(list), func(h v1alpha1.HeldChange) bool { return h.Stored == nil })
		list = slices.DeleteFunc(list, func(h v1alpha1.HeldChange) bool { return h.Stored != nil })
		annotations[v1alpha1.AnnotationHeld] = allowance.FormatHeld(append(already, stored...), list)
	}
}

// heldPatch converts the annotations of what was written of an object, which is converted already.
func heldPatch(patch, object map[string]any, composed bool) {
	annotations := resource.Map(patch, "metadata", "annotations")
	edits, edited := annotations[formerEdits]

	held, some := annotations[v1alpha1.AnnotationHeld]
	if !edited && !some {
		return
	}

	was, _ := entriesOf(textIn(object), false, composed)
	stored := slices.DeleteFunc(slices.Clone(was), func(h v1alpha1.HeldChange) bool { return h.Stored == nil })
	list := slices.DeleteFunc(slices.Clone(was), func(h v1alpha1.HeldChange) bool { return h.Stored != nil })

	if edited {
		text, _ := edits.(string)
		stored, _ = entriesOf(text, true, composed)
	}

	if some {
		text, _ := held.(string)
		list, _ = entriesOf(text, false, composed)
	}

	delete(annotations, formerEdits)

	text := decisionsText(slices.Concat(stored, list))

	switch {
	case text == decisionsText(was):
		delete(annotations, v1alpha1.AnnotationHeld)
	case len(stored)+len(list) == 0:
		annotations[v1alpha1.AnnotationHeld] = nil
	default:
		annotations[v1alpha1.AnnotationHeld] = text
	}
}

// decisionsText is the annotation without reasons, as what was written has it: see policytest.
func decisionsText(list []v1alpha1.HeldChange) string {
	raw, _ := json.Marshal(list) //nolint:errchkjson // It came of JSON.

	var out []map[string]any

	_ = json.Unmarshal(raw, &out) // So did this.

	for _, h := range out {
		delete(h, "missing")
	}

	raw, _ = yaml.Marshal(out)

	return string(raw)
}

func textIn(object map[string]any) string {
	text, _ := resource.Map(object, "metadata", "annotations")[v1alpha1.AnnotationHeld].(string)

	return text
}

// heldDecided converts what a decision says is held.
func heldDecided(decided map[string]any, composed bool) {
	forged, _ := decided["forged"].([]any)
	for i, key := range forged {
		if key == formerEdits {
			forged[i] = v1alpha1.AnnotationHeld
		}
	}

	list, _ := decided["held"].([]any)
	for i, h := range list {
		raw, _ := json.Marshal([]any{h}) //nolint:errchkjson // It came of JSON.

		now, ok := entriesOf(string(raw), false, composed)
		if !ok {
			continue
		}

		raw, _ = json.Marshal(now[0]) //nolint:errchkjson // It came of JSON.

		var out map[string]any
		if json.Unmarshal(raw, &out) == nil {
			list[i] = out
		}
	}
}

// quotedHeld is one of the annotations in a file of the corpus, in double quotes.
var quotedHeld = regexp.MustCompile(`kausality\.io/(edits|held): ("(?:[^"\\]|\\.)*")`)

// HeldText converts the annotations in a text of the corpus, in which no object has both.
func HeldText(text string) string {
	composed := strings.Contains(text, "base: rds") || strings.Contains(text, "base: composed")

	text = quotedHeld.ReplaceAllStringFunc(text, func(match string) string {
		m := quotedHeld.FindStringSubmatch(match)

		var value string
		if yaml.Unmarshal([]byte(m[2]), &value) != nil {
			return match
		}

		list, ok := entriesOf(value, m[1] == "edits", composed)
		if !ok {
			return v1alpha1.AnnotationHeld + ": " + m[2]
		}

		raw, _ := json.Marshal(list)
		quoted, _ := json.Marshal(string(raw))

		return v1alpha1.AnnotationHeld + ": " + string(quoted)
	})

	return heldBlocks(text, composed)
}

// heldBlocks converts the annotations that are in block style.
func heldBlocks(text string, composed bool) string {
	lines := strings.SplitAfter(text, "\n")

	var out strings.Builder

	for i := 0; i < len(lines); i++ {
		start := strings.TrimLeft(lines[i], " ")
		indent := len(lines[i]) - len(start)
		stored := start == formerEdits+": |\n"

		if !stored && start != v1alpha1.AnnotationHeld+": |\n" {
			out.WriteString(lines[i])

			continue
		}

		var value strings.Builder

		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], strings.Repeat(" ", indent+1)) {
			i++
			value.WriteString(lines[i][indent+2:])
		}

		list, _ := entriesOf(value.String(), stored, composed)
		raw, _ := json.Marshal(list) //nolint:errchkjson // It came of YAML.

		pad := strings.Repeat(" ", indent)
		out.WriteString(pad + v1alpha1.AnnotationHeld + ": |\n" + pad + "  " + string(raw) + "\n")
	}

	return out.String()
}
