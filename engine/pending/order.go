// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// notShown stands for values of objects in another namespace.
const notShown = "(not shown: in another namespace)"

// refText is a reference to sort by.
func refText(ref v1alpha1.ObjectReference) string {
	return strings.Join([]string{KeyOf(ref).String(), ref.Namespace, ref.Name}, "/")
}

// CompareKeys orders keys.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func sortEdits(list []v1alpha1.HeldChange) {
	slices.SortStableFunc(list, func(a, b v1alpha1.HeldChange) int { return allowance.StoredSince(a).Compare(allowance.StoredSince(b)) })
}

// sortObjects returns objects in the order of their keys, each once.
func sortObjects(list []Object) []Object {
	out := slices.SortedFunc(slices.Values(list), func(a, b Object) int {
		return CompareKeys(KeyOfObject(a.Unstructured), KeyOfObject(b.Unstructured))
	})

	return slices.CompactFunc(out, func(a, b Object) bool {
		return KeyOfObject(a.Unstructured) == KeyOfObject(b.Unstructured)
	})
}

// sorted are the entries as a status lists them.
func (s *summary) sorted() []v1alpha1.HeldChange {
	out := make([]v1alpha1.HeldChange, 0, len(s.collection.entries))

	for _, e := range s.collection.entries {
		s.hide(e)
		out = append(out, valid(e.HeldChange))
	}

	slices.SortFunc(out, Compare)

	return out
}

// Compare orders held changes: what destroys something first, then by parent, object and field.
func Compare(a, b v1alpha1.HeldChange) int {
	if a.Destroys != b.Destroys {
		if a.Destroys {
			return -1
		}

		return 1
	}

	parent := func(e v1alpha1.HeldChange) string {
		if e.Parent == nil {
			return ""
		}

		return refText(*e.Parent)
	}

	return cmp.Or(
		cmp.Compare(parent(a), parent(b)), cmp.Compare(refText(a.Ref), refText(b.Ref)), cmp.Compare(a.ComposedResource, b.ComposedResource),
		cmp.Compare(a.Field, b.Field), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From),
		cmp.Compare(a.Ref.UID, b.Ref.UID),
	)
}
