// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Root is the object that people edit, which a request is about.
type Root = pending.Key

// maxDepth is how many objects there may be from one to its root.
const maxDepth = 16

// rootOf finds the object that people edit of one below it: the Claim of an XR, or else the
// topmost by controller owner references. A parent that is not there, or may not be read, ends
// the search; so do parents that lead back, of which the first by UID is taken. Of more than
// [maxDepth] none is, but the object itself.
func (r *Reconciler) rootOf(ctx context.Context, u *unstructured.Unstructured) (Root, error) {
	seen := []*unstructured.Unstructured{u}

	for at := u; len(seen) < maxDepth; {
		ref, ok := resource.ParentOf(at)
		if !ok {
			return pending.KeyOfObject(at), nil
		}

		parent, err := r.Objects.read(ctx, ref, true)

		switch {
		case errors.Is(err, object.ErrGone), errors.Is(err, errUnread):
			return pending.KeyOfObject(at), nil
		case err != nil:
			return Root{}, err
		}

		for i, o := range seen {
			if o.GetUID() == parent.GetUID() {
				return pending.KeyOfObject(firstByUID(seen[i:])), nil
			}
		}

		seen, at = append(seen, parent), parent
	}

	return pending.KeyOfObject(u), nil
}

func firstByUID(list []*unstructured.Unstructured) *unstructured.Unstructured {
	out := list[0]
	for _, u := range list[1:] {
		if u.GetUID() < out.GetUID() {
			out = u
		}
	}

	return out
}

// referenceTo is a reference to read by.
func referenceTo(ref v1alpha1.ObjectReference) resource.Reference {
	return resource.Reference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: string(ref.UID),
	}
}

// referenceByKey is one to whatever has a name.
func referenceByKey(k pending.Key) resource.Reference {
	version := schema.GroupVersion{Group: k.Group}.String()

	return resource.Reference{APIVersion: version, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
}

// pendingChangeOf is the PendingChange of a root, without a status. The namespace is that of those of
// objects in none.
func pendingChangeOf(root *unstructured.Unstructured, namespace string) *v1alpha1.PendingChange {
	ref := pending.RefTo(root)

	return &v1alpha1.PendingChange{
		ObjectMeta: metav1.ObjectMeta{
			Name: pending.Name(pending.KeyOfObject(root).GroupKind, root.GetName()), Namespace: pending.Namespace(root, namespace),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, BlockOwnerDeletion: new(false),
			}},
		},
		Spec: v1alpha1.PendingChangeSpec{ObjectRef: ref},
	}
}
