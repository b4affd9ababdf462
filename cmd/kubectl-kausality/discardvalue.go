// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"math"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Reasons why a value cannot be put back.
var (
	errMaskedEdit = errors.New("the value from before may be a secret, and is not recorded")
	errCutEdit    = errors.New("the value from before is long, and only its beginning is recorded")
	errMoreEdits  = errors.New("there are more edits than are recorded")
	errTwoWays    = errors.New("the value from before can be read as text, and as something else, and no value is there that would tell which")
	errNoType     = errors.New("what is recorded is of a type that the field does not take any more")
	errNoElement  = errors.New("the list that it was in is another one by now")
	errNoPath     = errors.New("the field cannot be read")
)

// putBack is one field that is put back.
type putBack struct {
	edit v1alpha1.HeldChange
	path fieldpath.Path
	// to is the value from before; remove is true where there was none.
	to     any
	remove bool
}

// previous reads what an edit says of the value from before, by the schema of its kind, or else by
// what is there now: a string is recorded as it is, anything else as compact JSON. The error says
// why that cannot be told.
func previous(u map[string]any, e v1alpha1.HeldChange, sch *spec.Schema) (putBack, error) {
	out := putBack{edit: e}

	path, err := fieldpath.Parse(e.Field)

	switch {
	case err != nil && e.Masked, e.Field == moreEdits:
		return out, errMoreEdits
	case err != nil || len(path) == 0:
		return out, errNoPath
	case e.Masked:
		return out, errMaskedEdit
	case e.Stored.From != "":
		return out, errCutEdit
	}

	var there bool
	if out.path, there = request.EditedPath(u, e); !there {
		return out, errNoElement
	}

	path = out.path
	if e.From == "" {
		out.remove = true

		return out, nil
	}

	now, there := path.In(u)
	if out.to, err = valueOf(e.From, typesAt(sch, path), now, there && now != nil); err != nil {
		return out, err
	}

	var ok bool
	if out.to, ok = reordered(now, out.to); !ok {
		return out, errNoElement
	}

	return out, nil
}

// valueOf is the value of a text in a record, of one of some types where they are known.
func valueOf(text string, types []string, now any, there bool) (any, error) {
	value, ok := asJSON(text)

	switch {
	case !ok: // It can only be text.
		value = text
	case len(types) > 0:
		if !slices.Contains(types, typeString) {
			break
		}

		if slices.ContainsFunc(types, func(t string) bool { return t != typeString }) {
			return nil, errTwoWays
		}

		value = text
	case !there:
		return nil, errTwoWays
	case typeOf(now) == typeString:
		value = text
	case typeOf(now) != typeOf(value) && (!isNumber(now) || !isNumber(value)):
		return nil, errTwoWays
	}

	if len(types) > 0 && !takes(types, value) {
		return nil, errNoType
	}

	return value, nil
}

// moreEdits is the field of the entry that stands for the edits that the record has no room
// for.
const moreEdits = "(more)"

// asJSON is the value that a record is of where it is no string; false where that can only be
// one: compact JSON of a value is written in one way.
func asJSON(text string) (any, bool) {
	var out any
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		return nil, false
	}

	if _, ok := out.(string); ok || out == nil {
		return nil, false
	}

	return out, change.Text(out, math.MaxInt) == text
}

// apply puts a value back in an object.
func (p putBack) apply(object map[string]any) error {
	at, err := parentOf(object, p.path, !p.remove)
	if err != nil || at == nil {
		return err
	}

	last := p.path[len(p.path)-1]

	switch in := at.(type) {
	case map[string]any:
		if last.Type != fieldpath.SegmentField {
			return errNoElement
		}

		if p.remove {
			delete(in, last.Field)
		} else {
			in[last.Field] = p.to
		}

		return nil
	case []any:
		if last.Type == fieldpath.SegmentIndex && last.Index == uint(len(in)) && !p.remove {
			return putBack{path: p.path[:len(p.path)-1], to: append(slices.Clone(in), p.to)}.apply(object)
		}

		if last.Type != fieldpath.SegmentIndex || last.Index >= uint(len(in)) {
			return errNoElement
		}

		if !p.remove {
			in[last.Index] = p.to

			return nil
		}

		return p.shorten(object, in, int(last.Index))
	default:
		return errNoElement
	}
}

// shorten takes an element out of a list, which is in another list or an object.
func (p putBack) shorten(object map[string]any, list []any, i int) error {
	whole := putBack{path: p.path[:len(p.path)-1], to: append(append([]any{}, list[:i]...), list[i+1:]...)}

	return whole.apply(object)
}

// parentOf is what a path's last segment is in. Objects that are not there are made if wanted,
// and else it is nil; elements of lists never are.
func parentOf(object map[string]any, path fieldpath.Path, wanted bool) (any, error) {
	var at any = object

	for i, s := range path[:len(path)-1] {
		if next, there := step(at, s); there {
			at = next

			continue
		}

		in, ok := at.(map[string]any)

		switch {
		case !ok || s.Type != fieldpath.SegmentField || wanted && path[i+1].Type != fieldpath.SegmentField:
			return nil, errNoElement
		case !wanted:
			return nil, nil //nolint:nilnil // What is not there needs not to be removed.
		}

		made := map[string]any{}
		in[s.Field], at = made, made
	}

	return at, nil
}

// step is what a segment leads to in an object or a list; false where nothing is.
func step(at any, s fieldpath.Segment) (any, bool) {
	switch in := at.(type) {
	case map[string]any:
		next := in[s.Field]

		return next, next != nil && s.Type == fieldpath.SegmentField
	case []any:
		if s.Type == fieldpath.SegmentIndex && s.Index < uint(len(in)) {
			return in[s.Index], true
		}
	}

	return nil, false
}

// inOrder has values that are put back come first, the first elements of a list before the others, for
// the last may be missing; what is removed comes after them, from the end: so no index of a list is
// another one by then.
func inOrder(a, b putBack) int {
	switch {
	case a.remove != b.remove && b.remove:
		return -1
	case a.remove != b.remove:
		return 1
	case a.remove:
		return comparePaths(b.path, a.path)
	default:
		return comparePaths(a.path, b.path)
	}
}

func comparePaths(a, b fieldpath.Path) int {
	return slices.CompareFunc(a, b, func(x, y fieldpath.Segment) int {
		return cmp.Or(cmp.Compare(x.Index, y.Index), cmp.Compare(x.Field, y.Field))
	})
}
