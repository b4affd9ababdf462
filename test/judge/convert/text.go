// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

var (
	// condition is one that says how far an XR is, in a case of the corpus.
	condition = regexp.MustCompile(`\{type: Kausality, status: ("?\w+"?)[^}]*?message: (?:"([^"]*)"|([^}]*))\}`)
	marked    = regexp.MustCompile(`(kausality\.io/initialized): ["']true["']`)
	unmarked  = regexp.MustCompile(`(kausality\.io/initialized): null`)
	ofXR      = regexp.MustCompile(`(?m)^parent: xr$`)
	ofClaim   = regexp.MustCompile(`(?m)^base: claim$`)
)

// Text converts a case of the corpus.
func Text(text string) (string, error) {
	initialized := func(rec v1alpha1.Initialized) string { return "${1}: '" + resource.FormatInitialized(rec) + "'" }
	text = marked.ReplaceAllString(text, initialized(v1alpha1.Initialized{}))

	if start := strings.Index(text, "-- parent.yaml --"); start >= 0 && ofXR.MatchString(text) {
		section := text[start:]
		if end := strings.Index(section[1:], "\n-- "); end >= 0 {
			section = section[:end+1]
		}

		text = strings.Replace(text, section, unmarked.ReplaceAllString(section, initialized(v1alpha1.Initialized{Building: true})), 1)
	}

	if ofClaim.MatchString(text) || strings.Contains(text, "type: "+v1alpha1.ConditionState) {
		return text, nil
	}

	var failed error

	return condition.ReplaceAllStringFunc(text, func(was string) string {
		at := condition.FindStringSubmatch(was)

		said := strings.Trim(at[2]+at[3], "\"")
		out := fmt.Sprintf("{type: %s, status: %s, ", v1alpha1.ConditionState, at[1])

		if m := message.FindStringSubmatch(said); m != nil {
			raw, err := json.Marshal(v1alpha1.State{V: v1alpha1.RecordVersion, Progress: progress(m, v1alpha1.Progress{})})
			if err != nil {
				failed = err
			}

			out += "message: '" + string(raw) + "'}"
		} else {
			_, rest, _ := strings.Cut(was, "status: "+at[1]+", ")
			out += rest
		}

		separator := ", "
		if i := strings.Index(text, was); i > 1 && text[i-2:i] == "- " {
			separator = "\n" + text[strings.LastIndex(text[:i], "\n")+1:i]
		}

		return was + separator + out
	}), failed
}
