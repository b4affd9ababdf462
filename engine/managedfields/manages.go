// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// Manages reports whether the manager applies the field at a path of an object.
func (f Fields) Manages(object map[string]any, at change.Path) bool {
	var v any = object

	own := f.Whole

	for _, segment := range at {
		if f.Whole {
			return true
		}

		if f.Own == nil {
			return false
		}

		switch t := v.(type) {
		case map[string]any:
			if segment.Type != fieldpath.SegmentField {
				return false
			}

			pe := Field(segment.Field)
			v, own, f = t[segment.Field], f.Has(pe), f.Below(pe)
		case []any:
			if segment.Type != fieldpath.SegmentIndex || segment.Index >= uint(len(t)) {
				return false
			}

			v = t[segment.Index]

			switch keys := f.Keys(); {
			case len(keys) > 0:
				pe := Element(v, keys)
				own, f = f.Has(pe), f.Below(pe)
			case f.Values():
				own, f = f.Has(Value(v)), None()
			default:
				return own
			}
		default:
			return own
		}
	}

	return own || f.Whole
}
