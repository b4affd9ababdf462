// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// toNode turns a value into a YAML document by way of its JSON, which keeps
// the order of struct fields and sorts map keys; JSON is YAML in flow style,
// so only the style has to be taken off.
func toNode(v any) (*goyaml.Node, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode annotation: %w", err)
	}

	doc := &goyaml.Node{}
	if err := goyaml.Unmarshal(printable(raw), doc); err != nil {
		return nil, fmt.Errorf("cannot encode annotation: %w", err)
	}

	if err := writeUnknown(v, doc.Content[0]); err != nil {
		return nil, err
	}

	blockStyle(doc)

	return doc, nil
}

// printable escapes what JSON allows in a string as it is and YAML does not:
// all but its c-printable (https://yaml.org/spec/1.2.2/#51-character-set).
func printable(raw []byte) []byte {
	out := make([]byte, 0, len(raw))

	for _, r := range string(raw) {
		if r >= 0x7F && r <= 0x9F || r >= 0xFFFE && r <= 0xFFFF || r == 0xFEFF {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}

	return out
}

// blockStyle takes off JSON's flow style and its quotes where YAML needs none.
// The encoder quotes again what would otherwise read as another type, by the
// rules of YAML 1.2; annotations are read by those of 1.1.
func blockStyle(n *goyaml.Node) {
	n.Style &^= goyaml.FlowStyle

	if !quoted(n.Value) {
		n.Style &^= goyaml.DoubleQuotedStyle
	}

	if len(n.Content) == 0 && n.Kind != goyaml.ScalarNode {
		n.Style |= goyaml.FlowStyle
	}

	for _, c := range n.Content {
		blockStyle(c)
	}
}

// quoted reports whether a text keeps its quotes: a word that YAML 1.1 reads as
// true, false (https://yaml.org/type/bool.html), merge or default, or one with
// characters that only an escape can write.
func quoted(text string) bool {
	switch strings.ToLower(text) {
	case "y", "yes", "n", "no", "on", "off", "<<", "=":
		return true
	default:
		return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
	}
}
