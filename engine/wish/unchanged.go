// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Unchanged reports whether a wish is the one that is recorded, all of it is stored as it is
// wished, and its manager applies nothing beside it. [Compare] then finds no change, and
// [Comparison.Answer] answers the wish and its record; both take several times as long.
// Applied are the fields that the manager applies, as fieldsV1, and added are labels and
// annotations that it adds to a wish.
//
// False says nothing: a list that is merged with what others have in it, for instance, is left
// to Compare.
func Unchanged(
	wish, stored *unstructured.Unstructured, record *Record, applied map[string]any, added func(key string) bool,
) bool {
	if len(applied) == 0 || !record.whole() || len(record.baseline) > 0 {
		return false
	}

	u := &unchanged{added: added, Comparison: &Comparison{in: Input{Wish: wish, Stored: stored, Record: record}}}

	return u.object(applied) && u.leaves == record.size()
}

// unchanged is the finding out of whether a wish is unchanged.
type unchanged struct {
	Comparison *Comparison

	added func(key string) bool
	// leaves are how many leaves of the wish are recorded.
	leaves int
}

func (u *unchanged) object(applied map[string]any) bool {
	same := true

	u.Comparison.each(func(key string) {
		same = same && u.entry(key, u.Comparison.in.Wish.Object[key], u.Comparison.in.Stored.Object[key], root.under(key), applied)
	})

	if _, ok := u.Comparison.in.Wish.Object[fieldMetadata]; !ok {
		u.Comparison.at = append(u.Comparison.at, fieldpath.Field(fieldMetadata))
		same = same && u.within(nil, fieldsBelow(applied, fieldMetadata))
		u.Comparison.at = u.Comparison.at[:0]
	}

	for name := range applied {
		key, _ := strings.CutPrefix(name, fieldPrefix)
		if _, ok := u.Comparison.in.Wish.Object[key]; !ok && key != "apiVersion" && key != "kind" && key != "status" && key != fieldMetadata {
			return false
		}
	}

	return same
}

// fieldPrefix is in front of the names of fields in fieldsV1, and itself is the entry for the
// place that it is in.
const (
	fieldPrefix = "f:"
	itself      = "."
)

func fieldsBelow(applied map[string]any, key string) map[string]any {
	below, _ := applied[fieldPrefix+key].(map[string]any)

	return below
}

// entry reports whether a field of the wish is unchanged. Applied is of the map that the field is in.
func (u *unchanged) entry(key string, wish, stored any, at path, applied map[string]any) bool {
	u.Comparison.at = append(u.Comparison.at, fieldpath.Field(key))
	defer func() { u.Comparison.at = u.Comparison.at[:len(u.Comparison.at)-1] }()

	switch w := wish.(type) {
	case nil:
		return false
	case map[string]any:
		s, ok := stored.(map[string]any)

		return ok && u.fields(w, s, at, fieldsBelow(applied, key))
	default:
		return change.Equal(wish, stored) && u.recorded(wish, at)
	}
}

func (u *unchanged) fields(wish, stored map[string]any, at path, applied map[string]any) bool {
	if len(wish) == 0 {
		return len(stored) == 0 && u.within(wish, applied) && u.recorded(wish, at)
	}

	// Somebody else may have a map as a whole, and what else is in it is then theirs.
	if len(stored) > len(wish) && applied == nil && u.Comparison.at[0].Field != fieldMetadata {
		return false
	}

	for key, v := range wish {
		switch {
		case !u.Comparison.skipped(key):
			if !u.entry(key, v, stored[key], at.under(key), applied) {
				return false
			}
		case u.Comparison.at[0].Field != fieldMetadata && !change.Equal(v, stored[key]): // The gate's field.
			return false
		}
	}

	return u.within(wish, applied)
}

// within reports whether the manager applies nothing beside a map of the wish.
func (u *unchanged) within(wish, applied map[string]any) bool {
	metadata := u.Comparison.at[0].Field == fieldMetadata

	for name := range applied {
		key, isField := strings.CutPrefix(name, fieldPrefix)
		_, wished := wish[key]

		switch {
		case name == itself, isField && wished, metadata && u.Comparison.skipped(key):
		case metadata && len(u.Comparison.at) == 2 && isField && u.added(key):
		case metadata && len(u.Comparison.at) == 1 && isField:
			u.Comparison.at = append(u.Comparison.at, fieldpath.Field(key))
			below := u.within(nil, fieldsBelow(applied, key))
			u.Comparison.at = u.Comparison.at[:1]

			if !below {
				return false
			}
		default:
			return false
		}
	}

	return true
}

// recorded reports whether the record has each leaf of a part of the wish.
func (u *unchanged) recorded(wish any, at path) bool {
	same := true

	walk(wish, at, func(v any, at path) {
		sum, ok := u.Comparison.in.Record.get(at)
		same = same && ok && sum == hashOf(v)
		u.leaves++
	})

	return same
}
