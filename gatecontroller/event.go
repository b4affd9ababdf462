// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"strings"
	"unicode/utf8"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// maxNote is how many bytes the API server takes in an event's note.
const maxNote = 1024

// note cuts the text of an event so that the API server takes it.
func note(text string) string {
	if len(text) <= maxNote {
		return text
	}

	const mark = "…"

	end := maxNote - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + mark
}

// because says why a gate moves, and who asked for it.
func because(plan *gate.Plan) string {
	causes := gate.Causes(plan.By)
	if causes == "" || strings.HasSuffix(plan.Why, causes) {
		return plan.Why
	}

	return plan.Why + "; asked for by " + causes
}
