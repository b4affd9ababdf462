// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// maxLine is how long lines of manifests are, as far as words allow.
const maxLine = 110

// Manifest writes a suggestion as YAML with comments, a document for each policy, as a
// person would: short lists in one line, and fields in the order of the API.
func (s Suggestion) Manifest() string {
	var out strings.Builder

	comment(&out, "", fmt.Sprintf("AllowancePolicies suggested for Composition %s, to be reviewed.", s.Composition))

	if len(s.Notes) > 0 {
		comment(&out, "", "No policy is about this:")
	}

	for _, note := range s.Notes {
		comment(&out, "- ", note)
	}

	out.WriteString("\n")

	for i, p := range s.Policies {
		if i > 0 {
			out.WriteString("---\n")
		}

		p.write(&out)
	}

	return out.String()
}

// comment writes a comment in lines that are short enough.
func comment(out *strings.Builder, bullet, text string) {
	indent := strings.Repeat(" ", len(bullet))
	line := "# " + bullet

	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > maxLine:
			fmt.Fprintln(out, line)
			line = "# " + indent + word
		default:
			line += " " + word
		}
	}

	fmt.Fprintln(out, line)
}

// write writes one policy.
func (s Suggested) write(out *strings.Builder) {
	for _, c := range s.Comments {
		text, bulleted := strings.CutPrefix(c, "- ")
		if bulleted {
			comment(out, "- ", text)
		} else {
			comment(out, "", text)
		}
	}

	spec := &s.Policy.Spec

	fmt.Fprintf(out, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n", s.Policy.APIVersion, s.Policy.Kind, scalar(s.Policy.Name))
	fmt.Fprintf(out, "  match:\n    apiGroup: %s\n    kind: %s\n", scalar(spec.Match.APIGroup), scalar(spec.Match.Kind))
	sequence(out, "    ", "fields", spec.Match.Fields)

	if len(spec.Subjects) > 0 {
		fmt.Fprint(out, "  subjects:\n")
	}

	for _, subject := range spec.Subjects {
		fmt.Fprintf(out, "  - %s\n", flowSubject(subject))
	}

	if len(spec.Allow) == 0 {
		fmt.Fprint(out, "  allow: []\n")

		return
	}

	fmt.Fprint(out, "  allow:\n")

	for _, p := range spec.Allow {
		permission(out, p)
	}
}

// flowSubject writes a subject in one line, and marks the one that is to be replaced.
func flowSubject(s v1alpha1.Subject) string {
	out := "{kind: " + scalar(string(s.Kind))
	if s.Namespace != "" {
		out += ", namespace: " + scalar(s.Namespace)
	}

	out += ", name: " + scalar(s.Name)
	if s.MayInitiate {
		out += ", mayInitiate: true"
	}

	if out += "}"; s == ReplaceMe() {
		out += " # <- replace"
	}

	return out
}

// permission writes what is allowed.
func permission(out *strings.Builder, p v1alpha1.Permission) {
	head := []string{}

	switch {
	case p.Relation == v1alpha1.RelationExternal:
		head = append(head, "relation: "+scalar(string(p.Relation)))
	case p.APIGroup != "":
		head = append(head, "apiGroup: "+scalar(p.APIGroup), "kind: "+scalar(p.Kind))
	default:
		head = append(head, "kind: "+scalar(p.Kind))
	}

	line := "  - {" + strings.Join(head, ", ") + ", mutations: " + flowList(p.Mutations) + "}"
	if len(line) <= maxLine {
		fmt.Fprintln(out, line)

		return
	}

	fmt.Fprintf(out, "  - %s\n", strings.Join(head, "\n    "))
	sequence(out, "    ", "mutations", p.Mutations)
}

// sequence writes a list, in one line where that is short enough.
func sequence(out *strings.Builder, indent, name string, list []string) {
	if line := indent + name + ": " + flowList(list); len(line) <= maxLine {
		fmt.Fprintln(out, line)

		return
	}

	fmt.Fprintf(out, "%s%s:\n", indent, name)

	for _, e := range list {
		fmt.Fprintf(out, "%s- %s\n", indent, scalar(e))
	}
}

func flowList(list []string) string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = scalar(e)
	}

	return "[" + strings.Join(out, ", ") + "]"
}

var (
	// plainText is what YAML reads as text without quotes, wherever it stands, and
	// notText what of that it reads as something else.
	plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	notText   = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
)

// scalar writes a text.
func scalar(text string) string {
	if plainText.MatchString(text) && !notText.MatchString(text) {
		return text
	}

	raw, _ := json.Marshal(text) //nolint:errchkjson // A text always has JSON, which is YAML.

	return string(raw)
}
