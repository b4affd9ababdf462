// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// A section is YAML in a file, or in a part of one.
type section struct {
	// file it is in, and the name of the part; empty where it is the whole file.
	file, part string
	// before is how many lines of the file are before it.
	before int
	text   []byte
}

// fail is an error at a line of the section, counted from 1; 0 where it is not known.
func (s section) fail(line int, err error) error {
	where := s.file
	if line > 0 {
		where += ":" + strconv.Itoa(s.before+line)
	} else if s.part != "" {
		where += ":" + strconv.Itoa(max(s.before, 1))
	}

	if s.part != "" {
		where += ": " + s.part
	}

	return fmt.Errorf("%s: %w", where, err)
}

// yamlLine is how the parser says where something is wrong.
var yamlLine = regexp.MustCompile(`line (\d+): `)

// json is the section as JSON. Keys that are there twice are an error.
func (s section) json() ([]byte, error) {
	raw, err := yaml.YAMLToJSONStrict(s.text)
	if err == nil {
		return raw, nil
	}

	text, line := err.Error(), 0
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		line, _ = strconv.Atoi(text[m[2]:m[3]])
		text = text[m[1]:]
	}

	// Of several the first.
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "yaml: "), "\n")

	return nil, s.fail(line, errors.New(text))
}

// decode reads the section strictly.
func (s section) decode(into any) error {
	raw, err := s.json()
	if err != nil {
		return err
	}

	return s.fill(raw, "", into)
}

// jsonField is how the decoder says which field has the wrong type.
var jsonField = regexp.MustCompile(`^json: cannot unmarshal (.+) into Go (?:struct field [^.]*\.(\S+)|value) of type .*$`)

// fill reads JSON that was made of the section, or of what is at a path in it.
func (s section) fill(raw []byte, at string, into any) error {
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		path, text := at, err.Error()

		if m := jsonField.FindStringSubmatch(text); m != nil {
			path, text = join(at, m[2]), fmt.Sprintf("a value of type %s does not belong here", m[1])
		}

		return s.wrong(path, text)
	}

	out := make([]error, len(unknown))

	for i, err := range unknown {
		text, name, _ := strings.Cut(err.Error(), " \"")
		out[i] = s.wrong(join(at, strings.TrimSuffix(name, `"`)), text)
	}

	return errors.Join(out...)
}

// wrong is an error in a field.
func (s section) wrong(path, text string) error {
	if path != "" {
		text = path + ": " + text
	}

	return s.fail(s.line(path), errors.New(text))
}

// invalid are the errors of what does not compile, one for each field.
func (s section) invalid(at string, err error) error {
	var list interface{ Errors() []error }
	if !errors.As(err, &list) {
		return s.fail(s.line(at), err)
	}

	var out []error

	name, _, _ := strings.Cut(err.Error(), ": ")

	for _, err := range list.Errors() {
		line := s.line(at)

		if f := (*field.Error)(nil); errors.As(err, &f) {
			line = s.line(join(at, f.Field))
		}

		out = append(out, s.fail(line, fmt.Errorf("%s: %w", name, err)))
	}

	return errors.Join(out...)
}

func join(at, path string) string {
	if at == "" || path == "" || strings.HasPrefix(path, "[") {
		return at + path
	}

	return at + "." + path
}

// pathStep is a key or an index of a field's path.
var pathStep = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// line is where a field is, counted from 1: of what is not there, where that would be.
func (s section) line(path string) int {
	if path == "" {
		return s.first()
	}

	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(s.text, &doc); err != nil || len(doc.Content) == 0 {
		return 0
	}

	at := doc.Content[0]
	line := at.Line

	for _, step := range pathStep.FindAllString(path, -1) {
		key, next := below(at, strings.Trim(step, `[]"'`))
		if next == nil {
			break
		}

		line, at = key.Line, next
	}

	return line
}

// first is the first line that says something; 0 where none does.
func (s section) first() int {
	line := 0

	for text := range strings.Lines(string(s.text)) {
		line++

		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(text, "#") {
			return line
		}
	}

	return 0
}

// below is what a node has under a key or an index, and the node that says so.
func below(at *yamlv3.Node, step string) (key, value *yamlv3.Node) {
	if at.Kind == yamlv3.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(at.Content) {
			return at.Content[i], at.Content[i]
		}
	}

	if at.Kind == yamlv3.MappingNode {
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				return at.Content[i], at.Content[i+1]
			}
		}
	}

	return nil, nil
}

// documents are those of a file of several, without those that say nothing.
func (s section) documents() []section {
	var out []section

	doc := section{file: s.file, part: s.part, before: s.before}
	add := func() {
		if doc.first() > 0 {
			out = append(out, doc)
		}
	}

	line := 0

	for text := range strings.Lines(string(s.text)) {
		line++

		if rest, ok := strings.CutPrefix(text, "---"); ok && (strings.TrimSpace(rest) == "" || strings.HasPrefix(strings.TrimSpace(rest), "#")) {
			add()

			doc.before, doc.text = s.before+line, nil

			continue
		}

		doc.text = append(doc.text, text...)
	}

	add()

	return out
}
