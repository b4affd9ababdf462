// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// valued is what follows the key of an annotation: its value, in quotes or not.
const valued = `: *("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\w+)`

var (
	// section starts a file of a case.
	section = regexp.MustCompile(`(?m)^-- .* --\n`)
	// Annotations with their values.
	inMode     = regexp.MustCompile(`(?:(?m:^ +))?` + formerMode + valued + `(?:\n|, *)?`)
	inPolicies = regexp.MustCompile(formerPolicies + valued + `(\n|, *)?`)
	inGate     = regexp.MustCompile(v1alpha1.AnnotationGate + valued)
	// inBlock is a record of a gate in flow style, in a block.
	inBlock = regexp.MustCompile(`(` + v1alpha1.AnnotationGate + `: \|\n +)(\{.*\})`)
)

// gates converts what a text says of gates: a case of the corpus, or anything else with annotations in YAML.
func gates(text string) string {
	starts := section.FindAllStringIndex(text, -1)
	out, from := make([]string, 0, len(starts)+1), 0

	for _, at := range append(starts, []int{len(text), len(text)}) {
		file := text[from:at[0]]
		from = at[0]

		if !strings.HasPrefix(file, "-- texts.yaml --") { // That is for people.
			file = gatesOf(file)
		}

		out = append(out, file)
	}

	return strings.Join(out, "")
}

// gatesOf converts one file of a case, which has one object.
func gatesOf(text string) string {
	if strings.Contains(text, v1alpha1.AnnotationDesiredPolicies+": ") {
		return text // It has the present form, and a former one beside it is meant to be there.
	}

	var mode, known string

	if m := inMode.FindStringSubmatch(text); m != nil {
		mode = unquoted(m[1])
	}

	if m := inPolicies.FindStringSubmatch(text); len(m) > 0 && m[1] != "null" {
		known = m[1]
	}

	switch desired := gate.FormatDesired(v1alpha1.DesiredPolicies{Mode: v1alpha1.Mode(mode)}); {
	case mode != "" && known != "":
		text = inMode.ReplaceAllString(text, "")
	case mode != "":
		text = inPolicies.ReplaceAllString(text, "")
		text = regexp.MustCompile(formerMode+`: *\w+`).ReplaceAllString(text, v1alpha1.AnnotationDesiredPolicies+": '"+desired+"'")
	}

	text = inPolicies.ReplaceAllStringFunc(text, func(found string) string {
		m := inPolicies.FindStringSubmatch(found)
		if m[1] == "null" {
			return v1alpha1.AnnotationDesiredPolicies + ": null" + m[2]
		}

		return v1alpha1.AnnotationDesiredPolicies + ": " + quoted(desiredOf(unquoted(m[1]), mode)) + m[2]
	})

	text = inGate.ReplaceAllStringFunc(text, func(found string) string {
		m := inGate.FindStringSubmatch(found)
		if was := unquoted(m[1]); recordOf(was) != was {
			return v1alpha1.AnnotationGate + ": " + quoted(recordOf(was))
		}

		return found
	})

	return inBlock.ReplaceAllStringFunc(text, func(found string) string {
		m := inBlock.FindStringSubmatch(found)

		return m[1] + recordOf(m[2])
	})
}

func unquoted(scalar string) string {
	var out string
	if yaml.Unmarshal([]byte(scalar), &out) != nil {
		return scalar
	}

	return out
}

func quoted(text string) string {
	if strings.ContainsAny(text, "'\n") {
		return strconv.Quote(text)
	}

	return "'" + text + "'"
}
