// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strconv"
	"sync"

	yaml "go.yaml.in/yaml/v3"

	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Object is one of a file.
type Object struct {
	// Content of the object, as the API server decodes it; nil where the document is no
	// object at all.
	Content map[string]any

	doc *document
	// base is where the object is in its document.
	base fieldpath.Path
}

// File that the object is in.
func (o *Object) File() string { return o.doc.file }

// Position is where something is in a file.
type Position struct {
	// Line and Column count from 1, columns in characters.
	Line, Column int
}

// nodes are those of a document, read when they are asked for first.
type nodes struct {
	once sync.Once
	root *yaml.Node
}

// tree is the document as nodes; nil where it cannot be read.
func (d *document) tree() *yaml.Node {
	d.once.Do(func() {
		var root yaml.Node
		if yaml.Unmarshal(d.text, &root) == nil && len(root.Content) == 1 {
			d.root = root.Content[0]
		}
	})

	return d.root
}

// At returns where a field of the object is, given by its path as API errors write it: its
// key, or the element of a list. Of what is not there it is what it would be in.
func (o *Object) At(path string) Position {
	node := o.node(o.base)
	if node == nil {
		return Position{Line: o.doc.before + 1, Column: 1}
	}

	at, below, err := node, node, error(nil)

	var segments fieldpath.Path
	if path != "" {
		segments, err = fieldpath.Parse(path)
	}

	if err != nil {
		return o.position(at)
	}

	for _, s := range segments {
		key, value := child(below, s)
		if value == nil {
			break
		}

		at, below = key, value
	}

	return o.position(at)
}

func (o *Object) position(n *yaml.Node) Position {
	return Position{Line: n.Line + o.doc.before, Column: n.Column}
}

// node is what is at a path of the document; nil for nothing.
func (o *Object) node(path fieldpath.Path) *yaml.Node {
	out := o.doc.tree()
	for _, s := range path {
		if out != nil {
			_, out = child(out, s)
		}
	}

	return resolved(out)
}

// resolved is the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}

	return n
}

// child is what is below a node: its key, or itself in a list, and its value. Nil for
// nothing.
func child(n *yaml.Node, s fieldpath.Segment) (key, value *yaml.Node) {
	n = resolved(n)

	name := s.Field
	if s.Type == fieldpath.SegmentIndex {
		name = strconv.FormatUint(uint64(s.Index), 10)
	}

	switch n.Kind {
	case yaml.SequenceNode:
		if s.Type == fieldpath.SegmentIndex && s.Index < uint(len(n.Content)) {
			return n.Content[s.Index], n.Content[s.Index]
		}
	case yaml.MappingNode:
		// Of keys that are there twice the last one counts.
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if n.Content[i].Value == name && n.Content[i].Tag != mergeTag {
				return n.Content[i], n.Content[i+1]
			}
		}

		return merged(n, s)
	default: // It has no fields.
	}

	return nil, nil
}

// mergeTag is that of a key << whose value is merged into the mapping.
const mergeTag = "!!merge"

// merged is what is below a node in what is merged into it.
func merged(n *yaml.Node, s fieldpath.Segment) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag != mergeTag {
			continue
		}

		from := []*yaml.Node{resolved(n.Content[i+1])}
		if from[0].Kind == yaml.SequenceNode {
			from = from[0].Content
		}

		for _, one := range from {
			if key, value = child(one, s); value != nil {
				return key, value
			}
		}
	}

	return nil, nil
}

// Duplicate is a key that is in a mapping twice.
type Duplicate struct {
	// Position is where it is the second time.
	Position

	// Path of it.
	Path string
}

// Duplicates are the keys that are twice in a mapping of the object: the last one counts,
// and the others are lost without a word.
func (o *Object) Duplicates() []Duplicate {
	var out []Duplicate

	o.duplicates(o.node(o.base), nil, &out)

	return out
}

func (o *Object) duplicates(n *yaml.Node, path fieldpath.Path, out *[]Duplicate) {
	if n == nil {
		return
	}

	switch n.Kind {
	case yaml.SequenceNode:
		for i, e := range n.Content {
			o.duplicates(e, append(slices.Clone(path), index(i)), out)
		}
	case yaml.MappingNode:
		seen := map[string]bool{}

		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			at := append(slices.Clone(path), fieldpath.Field(key.Value))

			if seen[key.Value] {
				*out = append(*out, Duplicate{Path: at.String(), Position: o.position(key)})
			}

			seen[key.Value] = true

			o.duplicates(n.Content[i+1], at, out)
		}
	default: // It has no keys.
	}
}

func index(i int) fieldpath.Segment { return fieldpath.FieldOrIndex(strconv.Itoa(i)) }
