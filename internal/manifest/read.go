// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Read reads all objects of a file, given by its name and its text: documents of YAML or
// JSON one after another, and those of lists, each by itself. Documents that are empty
// are left out. The error is of all documents that cannot be read, each with its line;
// the others are returned.
func Read(name string, text []byte) ([]*Object, error) {
	var (
		out  []*Object
		errs []error
	)

	for _, doc := range split(bytes.TrimPrefix(bytes.Clone(text), []byte("\uFEFF"))) {
		doc.file = name

		value, err := doc.value()
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read %s: %w", name, err))

			continue
		}

		if value == nil {
			continue
		}

		out = append(out, doc.objects(value)...)
	}

	return out, errors.Join(errs...)
}

// document is one of a file.
type document struct {
	nodes

	file string
	// text of it, and how many lines are before it.
	text   []byte
	before int
}

// split cuts a file into its documents.
func split(text []byte) []*document {
	if start := bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(start, []byte("{")) {
		if out, ok := splitJSON(text); ok {
			return out
		}
	}

	var out []*document

	add := func(lines []byte, before int) {
		if len(bytes.TrimSpace(lines)) > 0 {
			out = append(out, &document{text: lines, before: before})
		}
	}

	begin, before, at, line := 0, 0, 0, 0

	for l := range bytes.Lines(text) {
		if separates(l) {
			add(text[begin:at], before)

			// What is behind the dashes is of the next document, and keeps its column.
			copy(l, "   ")

			begin, before = at, line
		}

		at += len(l)
		line++
	}

	add(text[begin:], before)

	return out
}

// separates reports whether a line begins a document.
func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))

	return ok && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// splitJSON cuts a stream of JSON objects; false where it is none: YAML, too, may begin
// with a brace.
func splitJSON(text []byte) ([]*document, bool) {
	var out []*document

	in := json.NewDecoder(bytes.NewReader(text))

	for {
		start := in.InputOffset()

		var raw json.RawMessage

		err := in.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, true
		}

		if err != nil {
			return nil, false
		}

		// Where a line holds several, those before it are blank, so that columns are those of the file.
		begin := bytes.LastIndexByte(text[:start], '\n') + 1
		doc := bytes.Clone(text[begin:in.InputOffset()])

		for i := range doc[:int(start)-begin] {
			doc[i] = ' '
		}

		// YAML indents by no tabs; inside of strings JSON has none.
		out = append(out, &document{
			text: bytes.ReplaceAll(doc, []byte("\t"), []byte(" ")), before: bytes.Count(text[:begin], []byte("\n")),
		})
	}
}

// value is what the document holds: JSON as the API server decodes it. Nil where it is
// empty.
func (d *document) value() (any, error) {
	raw, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		// Once more, below as many lines as are before it: the error names one.
		_, err = yaml.YAMLToJSON(append(bytes.Repeat([]byte("\n"), d.before), d.text...))

		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}

	var out any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("document at line %d: %w", d.before+1, err)
	}

	return out, nil
}

// objects are those of the document: itself, or the items of a list.
func (d *document) objects(value any) []*Object {
	object, ok := value.(map[string]any)
	if !ok {
		return []*Object{{doc: d}}
	}

	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)

	if !isList || !strings.HasSuffix(kind, "List") {
		return []*Object{{Content: object, doc: d}}
	}

	out := make([]*Object, 0, len(items))

	for i, item := range items {
		one := &Object{doc: d, base: fieldpath.Path{fieldpath.Field("items"), index(i)}}
		one.Content, _ = item.(map[string]any)
		out = append(out, one)
	}

	return out
}
