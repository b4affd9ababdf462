// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Observed is one change of a composed resource that was seen, whether it was held or, in
// mode Audit, let through.
type Observed struct {
	// Parent is the kind of the XR, and ParentName its name, with its namespace where it has
	// one: NAMESPACE/NAME.
	Parent     schema.GroupKind
	ParentName string
	// ParentFields are those of the XR that were changed with it; empty where that is not
	// known.
	ParentFields []string
	// Child is the kind of the composed resource; without a group where that is not known.
	Child schema.GroupKind
	// ChildField that changed, with concrete indices, or create or delete.
	ChildField string
	// User who changed the XR, or the Claim; empty where that is not known.
	User string
	// Composition that composes the XR; empty where that is not known.
	Composition string
	// At is where it is recorded, as LOG:LINE; empty of what an XR itself reports.
	At string
}

// where names the XR, who changed it, and where that is recorded.
func (o *Observed) where() string {
	out := fmt.Sprintf("of %s %s", o.Parent.Kind, o.ParentName)
	if o.User != "" {
		out += ", changed by " + o.User
	}

	if o.At != "" {
		out += ", at " + o.At
	}

	return out
}

// HeldOf are the changes that composition functions report of XRs as held, or in mode Audit
// as passed. Which fields of the XR they followed from is what is recorded of its newest
// generation: what was allowed, and what was stored without.
func HeldOf(composites []*unstructured.Unstructured) iter.Seq[Observed] {
	return func(yield func(Observed) bool) {
		for _, xr := range composites {
			fields, user := newest(xr)
			held, _, _ := condition.Reported(xr)

			for _, h := range held {
				gvk := schema.FromAPIVersionAndKind(h.Change.Ref.APIVersion, h.Change.Ref.Kind)
				o := Observed{
					Parent: xr.GroupVersionKind().GroupKind(), ParentName: nameOf(xr), ParentFields: fields,
					Child: gvk.GroupKind(), ChildField: h.Change.Field, User: user, Composition: composedBy(xr),
				}
				if !yield(o) {
					return
				}
			}
		}
	}
}

// composedBy is the name of the Composition that composes an XR; empty where it does not
// say.
func composedBy(xr *unstructured.Unstructured) string {
	for _, path := range [][]string{{fieldSpec, "crossplane", "compositionRef", "name"}, {fieldSpec, "compositionRef", "name"}} {
		if name := resource.String(xr.Object, path...); name != "" {
			return name
		}
	}

	return ""
}

func nameOf(u *unstructured.Unstructured) string {
	return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// newest are the fields of an XR that its newest generation changed, as far as it is
// recorded, and who did.
func newest(xr *unstructured.Unstructured) (fields []string, user string) {
	entries, _ := allowance.ParseTrace(xr) // What cannot be read tells nothing.

	for _, e := range entries {
		if e.Generation == resource.Generation(xr) && e.Field != v1alpha1.MutationCreate {
			fields, user = appendNew(fields, e.Field), e.Initiator
		}
	}

	edits, _ := allowance.ParseStored(xr)

	for _, e := range edits {
		if !strings.HasPrefix(e.Field, "(") { // Not what stands for those that are left out.
			fields, user = appendNew(fields, e.Field), allowance.Author(e)
		}
	}

	return fields, user
}

// anyIndex is a field with any index in place of each: in another object the element is
// somewhere else.
func anyIndex(text string) string {
	path, err := fieldpath.Parse(text)
	if err != nil {
		return text
	}

	for i, s := range path {
		if s.Type == fieldpath.SegmentIndex {
			path[i] = fieldpath.Field("*")
		}
	}

	return path.String()
}
