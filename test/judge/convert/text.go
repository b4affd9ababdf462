// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

var (
	// block starts an allowance in block style, and flow one in flow style.
	block = regexp.MustCompile(`^( *)- (?:apiGroup|kind|relation|mutation): `)
	flow  = regexp.MustCompile(`\{"?(?:apiGroup|kind|relation|mutation)"?: ?`)
	// last is the field of a hop, as it is written, in block style.
	last = regexp.MustCompile(`(?m)^ +(?:- )?field: (.*)$`)
)

// Text gives the allowances in a text the form that they have now. The text is a case of the corpus, the value of an
// annotation, or anything else in which they are YAML.
func Text(text string) string {
	lines := strings.SplitAfter(text, "\n")
	out := make([]string, 0, len(lines))

	for i := 0; i < len(lines); {
		m := block.FindStringSubmatch(lines[i])
		if m == nil {
			out = append(out, flows(lines[i]))
			i++

			continue
		}

		end := i + 1
		for end < len(lines) && strings.HasPrefix(lines[end], m[1]+"  ") {
			end++
		}

		out = append(out, blockOf(m[1]+"  ", lines[i:end])...)
		i = end
	}

	return strings.Join(out, "")
}

// blockOf converts one allowance in block style, whose fields are indented.
func blockOf(indent string, lines []string) []string {
	text := strings.Join(lines, "")

	a, ok := parse(strings.Replace(text, "- ", "  ", 1))
	if !ok {
		for i := range lines {
			lines[i] = flows(lines[i])
		}

		return lines
	}

	field := ""
	if all := last.FindAllStringSubmatch(text, -1); len(all) > 0 {
		field = all[len(all)-1][1]
	}

	was := a
	infer(&a)

	source := []string{indent + "source:\n", indent + "  type: " + string(a.Source.Type) + "\n"}
	if a.Source.Name != "" {
		source = append(source, indent+"  name: "+a.Source.Name+"\n")
	}

	if a.Source.Field != "" {
		source = append(source, indent+"  field: "+field+"\n")
	}

	if a.Source.From != "" {
		source = append(source, indent+"  from: \""+a.Source.From+"\"\n")
	}

	var out []string

	for _, line := range lines {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, indent), ":")

		if key == "policy" && a.Policy == "" {
			continue
		}

		out = append(out, line)

		if key == "generation" && strings.HasPrefix(line, indent) {
			out = append(out, indent+"id: \""+a.ID+"\"\n")
		}

		if strings.HasPrefix(line, indent) && (key == "policy" || key == "initiator" && (was.Policy == "" || a.Policy == "")) {
			out = append(out, source...)
		}
	}

	return out
}

// flows converts the allowances in flow style of a line.
func flows(line string) string {
	from := 0

	for {
		at := flow.FindStringIndex(line[from:])
		if at == nil {
			return line
		}

		start := from + at[0]
		from = start + 1

		end := closing(line, start)
		if end < 0 {
			continue
		}

		element := line[start:end]
		single := strings.Count(line[:start], "'")%2 == 1

		if text, ok := flowOf(element, single); ok {
			line = line[:start] + text + line[end:]
		}
	}
}

// closing is the index behind the brace that closes one.
func closing(line string, start int) int {
	depth := 0

	for i := start; i < len(line); i++ {
		switch line[i] {
		case '{':
			depth++
		case '}':
			depth--

			if depth == 0 {
				return i + 1
			}
		}
	}

	return -1
}

// flowOf converts one allowance in flow style, which may be within single quotes.
func flowOf(element string, single bool) (string, bool) {
	a, ok := parse(strings.ReplaceAll(element, `\"`, `"`))
	if !ok {
		return "", false
	}

	policy := a.Policy
	infer(&a)

	quote := "'"
	if single {
		quote = `"`
	}

	source := "source: {type: " + string(a.Source.Type)
	if a.Source.Name != "" {
		source += ", name: " + a.Source.Name
	}

	if a.Source.Field != "" {
		field := a.Source.Field

		for _, raw := range []string{field, `"` + field + `"`, `\"` + field + `\"`, "'" + field + "'"} {
			if strings.Contains(element, "field: "+raw+"}") || strings.Contains(element, "field: "+raw+",") {
				field = raw
			}
		}

		source += ", field: " + field
	}

	if a.Source.From != "" {
		source += ", from: " + quote + a.Source.From + quote
	}

	if a.Policy == "" && policy != "" {
		element = strings.Replace(element, ", policy: "+policy, "", 1)
	}

	more := ", id: " + quote + a.ID + quote + ", " + source + "}"
	if i := strings.Index(element, ", trace: ["); i >= 0 {
		return element[:i] + more + element[i:], true
	}

	return element[:len(element)-1] + more + "}", true
}

// parse reads what may be an allowance of the former form.
func parse(text string) (v1alpha1.Allowance, bool) {
	var (
		a       v1alpha1.Allowance
		generic map[string]any
	)

	if yaml.Unmarshal([]byte(text), &generic) != nil || yaml.Unmarshal([]byte(text), &a) != nil {
		return a, false
	}

	return a, generic["generation"] != nil && (a.Mutation != "" || len(a.Mutations) > 0) && generic["source"] == nil
}

// kindApproval is the kind of the hop that what is approved starts with.
const kindApproval = "ChangeApproval"

// infer finds out what gave an allowance, as the predicates did that its source takes the place of.
func infer(a *v1alpha1.Allowance) {
	var hop v1alpha1.Hop
	if n := len(a.Trace); n > 0 {
		hop = a.Trace[n-1]
	}

	approval := slices.IndexFunc(a.Trace, func(h v1alpha1.Hop) bool { return h.Kind == kindApproval })
	byWindow := len(a.Trace) == 1 && a.Initiator == allowance.InitiatorOfWindow(a.Policy) && a.Policy != "" && allowance.External(*a)

	a.ID = allowance.ID(a.Generation, hop.Request)
	a.Source = v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: a.Policy, Field: hop.Field}

	if approval >= 0 && a.Policy == "" {
		a.Source.Type, a.Source.Name = v1alpha1.SourceApproval, a.Trace[approval].Name
	}

	switch {
	case a.Digest != "":
		a.Source.Field = ""
	case byWindow:
		a.Source.Type, a.Policy = v1alpha1.SourceWindow, ""
		if hop.Field == string(v1alpha1.RelationExternal) {
			a.Source.Field = ""
		}
	case a.Source.Type == v1alpha1.SourceApproval:
	case creation(*a):
		a.Source.Type = v1alpha1.SourceCreation
	}

	if hop.Field == v1alpha1.MutationDelete {
		a.Source.Type, a.Source.Field = v1alpha1.SourceDeletion, ""

		if n := len(a.Trace); n > 1 && a.Trace[n-2].Field == v1alpha1.MutationDelete {
			a.Source.From = allowance.ID(a.Trace[n-2].Generation, a.Trace[n-2].Request)
		}
	}

	a.Source.Name = cmp.Or(a.Source.Name, a.Policy)
}

// describe says for an error which allowance is meant.
func describe(a v1alpha1.Allowance) string {
	return fmt.Sprintf("%s%v of generation %d by %s", a.Mutation, a.Mutations, a.Generation, a.Initiator)
}
