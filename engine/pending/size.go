// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"encoding/json"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

const (
	// maxBytes is the most bytes that changes take as JSON.
	maxBytes = 256 * 1024
	// shortValue is the most bytes of a value where there is little room.
	shortValue = 64
	// maxKind, maxNamespace and maxRefName are what the API server takes of a reference.
	maxKind, maxNamespace, maxRefName, maxVersion = 63, 63, 253, 317
)

// fit cuts a list to what a status lists: reasons go first, then long values, then whole changes
// from the end.
func fit(list []v1alpha1.HeldChange) []v1alpha1.HeldChange {
	list = list[:min(len(list), v1alpha1.MaxPendingChanges)]

	if size(list) > maxBytes {
		for i := range list {
			list[i].Missing = ""
		}
	}

	if size(list) > maxBytes {
		for i := range list {
			list[i].From, list[i].To = change.Text(list[i].From, shortValue), change.Text(list[i].To, shortValue)
		}
	}

	for size(list) > maxBytes {
		list = list[:len(list)-1]
	}

	if len(list) == 0 {
		return nil
	}

	return list
}

// size is how many bytes a list takes as JSON.
func size(list []v1alpha1.HeldChange) int {
	raw, err := json.Marshal(list)
	if err != nil {
		return maxBytes + 1 // Times of other years than there are.
	}

	return len(raw)
}

// valid is an entry that the API server takes, whatever a condition says: what it would refuse
// would keep all the others from being listed.
func valid(e v1alpha1.HeldChange) v1alpha1.HeldChange {
	e.Ref = validRef(e.Ref)

	if e.Parent != nil {
		parent := validRef(*e.Parent)
		e.Parent = &parent
	}

	return e
}

func validRef(ref v1alpha1.ObjectReference) v1alpha1.ObjectReference {
	ref.APIVersion = change.Text(cmp.Or(ref.APIVersion, Unknown), maxVersion)
	ref.Kind = change.Text(cmp.Or(ref.Kind, Unknown), maxKind)
	ref.Namespace = change.Text(ref.Namespace, maxNamespace)
	ref.Name = change.Text(ref.Name, maxRefName)

	return ref
}
