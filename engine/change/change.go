// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"sort"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Change is one difference between two versions of an object.
type Change struct {
	// Path of the changed leaf; the index of a list element is the one in the
	// new object, or in the old one where the element is gone.
	Path Path
	// Field is Path as text.
	Field string
	// From is the old value, nil when the field is added.
	From any
	// To is the new value, nil when the field is removed.
	To any
}

// Removal says whether the field is gone from the new object.
func (c Change) Removal() bool { return c.To == nil }

// Addition says whether the field was not in the old object.
func (c Change) Addition() bool { return c.From == nil }

// Metadata says whether the change is below metadata.
func (c Change) Metadata() bool {
	return len(c.Path) > 0 && c.Path[0].Type == fieldpath.SegmentField && c.Path[0].Field == "metadata"
}

// Create is the change that makes an object.
func Create() Change { return pseudo(v1alpha1.MutationCreate) }

// Delete is the change that deletes an object.
func Delete() Change { return pseudo(v1alpha1.MutationDelete) }

func pseudo(name string) Change {
	return Change{Path: Path{fieldpath.Field(name)}, Field: name}
}

// Between returns the changes from one version of an object to another, sorted
// by field. Left out are apiVersion, kind and status, and of metadata all but
// labels, annotations, finalizers and ownerReferences. Neither object is
// modified; either may be nil.
func Between(oldObj, newObj map[string]any) []Change {
	var changes []Change

	Merge(oldObj, newObj, func(c Change) bool {
		changes = append(changes, c)

		return false
	})

	sort.SliceStable(changes, func(i, j int) bool { return changes[i].Field < changes[j].Field })

	return changes
}

// Merge returns the new version with every change for which hold is true kept
// at its old value. Neither object is modified; the result may share parts of
// both. A removed list element that is held keeps its place where it can.
func Merge(oldObj, newObj map[string]any, hold func(Change) bool) map[string]any {
	m := merger{hold: hold}
	out := make(map[string]any, len(newObj))

	maps.Copy(out, newObj)

	for _, key := range unionKeys(oldObj, newObj) {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			m.metadata(oldObj, newObj, out)
		default:
			m.field(Path{fieldpath.Field(key)}, key, oldObj, newObj, out)
		}
	}

	return out
}

// metadata merges the parts of metadata that people and controllers decide on.
func (m merger) metadata(oldObj, newObj, out map[string]any) {
	oldMeta, _ := oldObj["metadata"].(map[string]any)
	newMeta, _ := newObj["metadata"].(map[string]any)
	outMeta := make(map[string]any, len(newMeta))

	maps.Copy(outMeta, newMeta)

	for _, key := range []string{"annotations", "finalizers", "labels", "ownerReferences"} {
		m.field(Path{fieldpath.Field("metadata"), fieldpath.Field(key)}, key, oldMeta, newMeta, outMeta)
	}

	if newMeta != nil {
		out["metadata"] = outMeta
	}
}
