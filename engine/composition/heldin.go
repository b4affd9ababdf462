// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// What a function holds is reported by the Kausality condition of its XR and the Claim,
// and nowhere else: who wants to know what is held of one resource reads it there.
var (
	// heldPart is where a message begins to say what is held, and heldEnd what may
	// come after that: earlier versions wrote "to mend", and their messages may be stored.
	heldPart = regexp.MustCompile(`; (\d+) held: `)
	heldEnd  = regexp.MustCompile(`; \d+ (?:left to others|to (?:correct|mend)): |` + approveMark)
	// heldStart is where a held change begins: its resource, and what becomes of it.
	heldStart = regexp.MustCompile(`(?:^|; )[A-Z]\w* (?:of composed resource )?[^\s:;"]*` +
		`(?:: \S+ (?:stays|is) |: \(audit\) |: \d+ more changes, | is (?:not |\(audit\) )(?:created|deleted): )`)
	// heldMore is how many are left out at the end.
	heldMore = regexp.MustCompile(`; and (\d+) more$`)
)

// Forms of [Held.String]. What has no name yet has that of the composed resource.
var (
	wholeForm  = regexp.MustCompile(`^([A-Z]\w* (?:of composed resource )?\S*) is (not |\(audit\) )(create|delete)d: ([\s\S]*)$`)
	moreForm   = regexp.MustCompile(`^([A-Z]\w* [^\s:]*): (\d+) more changes, ([\s\S]*)$`)
	passedForm = regexp.MustCompile(`^([A-Z]\w* [^\s:]*): \(audit\) (\S+) is changed from ([\s\S]*?) to ([\s\S]*?): ([\s\S]*)$`)
	staysForm  = regexp.MustCompile(`^([A-Z]\w* [^\s:]*): (\S+) stays ([\s\S]*?) \(asked: ([\s\S]*?)\): ([\s\S]*)$`)
)

// HeldIn reads what the message of a Kausality condition says is held, and how many
// more it does not list. False where it cannot be read: it is to be shown as it is.
func HeldIn(message string) (held []Held, more int, ok bool) {
	at := heldPart.FindStringSubmatchIndex(message)
	if at == nil {
		return nil, 0, true
	}

	total, err := strconv.Atoi(message[at[2]:at[3]])
	text := message[at[1]:]

	if end := heldEnd.FindAllStringIndex(text, -1); len(end) > 0 {
		text = text[:end[0][0]]
	}

	if m := heldMore.FindStringSubmatchIndex(text); m != nil {
		more, _ = strconv.Atoi(text[m[2]:m[3]])
		text = text[:m[0]]
	}

	starts := heldStart.FindAllStringIndex(text, -1)
	counted := more

	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}

		h, n, read := readHeld(strings.TrimPrefix(text[start[0]:end], "; "))
		if !read {
			return nil, 0, false
		}

		held, counted = append(held, h), counted+n
	}

	if err != nil || len(starts) == 0 || starts[0][0] != 0 || counted != total {
		return nil, 0, false
	}

	return held, more, true
}

// readHeld reads one change as [Held.String] writes it, and how many it stands for. A
// value that holds what comes after values in a message is cut there.
func readHeld(text string) (h Held, n int, ok bool) {
	if m := wholeForm.FindStringSubmatch(text); m != nil {
		return Held{Resource: m[1], Passed: m[2] != "not ", Change: v1alpha1.HeldChange{Field: m[3], Missing: m[4]}}, 1, true
	}

	if m := moreForm.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[2])

		return Held{Resource: m[1], Change: v1alpha1.HeldChange{Field: "(" + m[2] + " more)", Missing: m[3]}}, n, err == nil
	}

	if m := passedForm.FindStringSubmatch(text); m != nil {
		return Held{Resource: m[1], Passed: true, Change: between(m[2], m[3], m[4], m[5])}, 1, true
	}

	if m := staysForm.FindStringSubmatch(text); m != nil {
		return Held{Resource: m[1], Change: between(m[2], m[3], m[4], m[5])}, 1, true
	}

	return Held{}, 0, false
}

func between(field, from, to, reason string) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{Field: field, From: value(from), To: value(to), Missing: reason}
}

// value is what stands for itself in a message: nothing for what is not set.
func value(text string) string {
	if text == "(unset)" {
		return ""
	}

	return text
}
