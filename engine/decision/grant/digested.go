// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Digested is what the digest of a change stands for.
func Digested(o request.Objects, places *request.Places, outside request.External, c change.Change) digest.Change {
	out := digest.Change{Kind: o.GroupKind(), Operation: digest.Update, Follows: follows(o, outside, c)}

	switch {
	case c.Field == v1alpha1.MutationCreate:
		out.Operation, out.Name = digest.Create, o.ComposedName()
		out.To, out.Masked = wholeValue(o.New)

		if o.Parent != nil {
			out.UID = o.Parent.GetUID()
		}
	case c.Field == v1alpha1.MutationDelete || o.Old == nil || o.New == nil:
		out.Operation = digest.Delete
		if o.Old != nil {
			out.UID = o.Old.GetUID()
		}
	default:
		out.UID, out.Elements = o.Old.GetUID(), places.Locate().Elements(c)
		in := o.Between()
		out.From, out.To = c.From, c.To

		if out.Masked = mask.Hides(c.Path, c.From, in...) || mask.Hides(c.Path, c.To, in...); out.Masked {
			out.From, out.To = mask.Value(c.Path, c.From, in...), mask.Value(c.Path, c.To, in...)
		}
	}

	return out
}

// follows are the external actions that follow a change of a managed resource with a gate.
func follows(o request.Objects, outside request.External, c change.Change) []string {
	if !resource.IsManaged(o.Target()) {
		return nil
	}

	if o.Old == nil {
		if outside.Ungated {
			return nil
		}

		return []string{management.ActionCreate}
	}

	_, set := resource.Value(o.Old.Object, "spec", "managementPolicies")

	switch {
	case managed.Ungated(o.Old) || !set && !management.Governed(o.Old):
		return nil
	case c.Field == v1alpha1.MutationDelete:
		return []string{management.ActionDelete}
	case Replaces(o, outside, c):
		return []string{management.ActionCreate, management.ActionDelete}
	case GoesOut(c):
		return []string{management.ActionUpdate}
	default:
		return nil
	}
}

// wholeValue is all that is wished of a new object. What is hidden of it is masked; true
// where anything is.
func wholeValue(u *unstructured.Unstructured) (any, bool) {
	masked := false
	object := mask.Object(u.Object, func([]string, any) string {
		masked = true

		return mask.Text
	})

	for _, key := range []string{"apiVersion", "kind", "status"} {
		delete(object, key)
	}

	meta := map[string]any{}

	for _, key := range []string{"name", "namespace", "labels"} {
		if v, ok := resource.Value(object, "metadata", key); ok {
			meta[key] = v
		}
	}

	theirs := maps.Clone(resource.Map(object, "metadata", "annotations"))
	maps.DeleteFunc(theirs, func(key string, _ any) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) })

	if len(theirs) > 0 {
		meta["annotations"] = theirs
	}

	object["metadata"] = meta

	return object, masked
}
