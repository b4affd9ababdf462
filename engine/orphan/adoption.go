// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Reasons why a managed resource cannot be adopted or released as asked.
var (
	// ErrNotManaged is of an object that is no managed resource.
	ErrNotManaged = errors.New("it is no managed resource")
	// ErrOwned is of one whose owner is there.
	ErrOwned = errors.New("its owner is there, and decides what becomes of it")
	// ErrDeleting is of one that is being deleted.
	ErrDeleting = errors.New("it is being deleted")
	// ErrAsked is of one that is being deleted with what it stands for.
	ErrAsked = errors.New("somebody asked to delete it, and who may: its gate is open for that")
	// ErrNotLeft is of one that nothing orphaned.
	ErrNotLeft = errors.New("it has no owner that is gone: it stands by itself already")
	// ErrNamespace is of one in another namespace than who is to adopt it.
	ErrNamespace = errors.New("a namespaced composite resource is made only of what is in its own namespace")
	// ErrNoPart is of one that does not say which resource of the Composition it
	// is.
	ErrNoPart = errors.New("it has no annotation " + resource.AnnotationComposed +
		": say which resource of the Composition it is, with --resource")
	// ErrTwice is of one of which the adopting XR has a second one.
	ErrTwice = errors.New("the composite resource has another one in its place already: release that with --orphan first, " +
		"and keep the composite resource from making it by the annotation crossplane.io/paused")
)

// Gone reports whether the owner that a reference names is there no more.
type Gone func(ref map[string]any) bool

// owners splits the owner references of an object into those whose owner is
// there, and reports whether its controller is, and how many are gone.
func owners(u *unstructured.Unstructured, gone Gone) (left []any, owned bool, lost int) {
	left = []any{}

	for _, e := range resource.List(u.Object, fieldMetadata, "ownerReferences") {
		ref, ok := e.(map[string]any)
		if !ok {
			continue
		}

		if gone(ref) {
			lost++

			continue
		}

		controller, _ := ref["controller"].(bool)
		owned = owned || controller
		left = append(left, e)
	}

	return left, owned, lost
}

// Adopter is the XR that adopts.
type Adopter struct {
	// XR it is.
	XR *unstructured.Unstructured
	// Legacy is true where Crossplane has its own fields in the spec itself,
	// and not below spec.crossplane.
	Legacy bool
	// Composed is what it is made of.
	Composed []*unstructured.Unstructured
}

// Adopt returns the merge patch that makes a managed resource a part of an XR,
// and the one that has the XR refer to it; the latter is nil where it does. Part
// names the resource in the Composition; empty for what it says itself.
func Adopt(u *unstructured.Unstructured, by Adopter, part string, gone Gone) (managed, composite map[string]any, err error) {
	if part == "" {
		part = resource.ComposedName(u)
	}

	refs, owned, _ := owners(u, gone)
	ours := false

	if parent, ok := resource.ParentOf(u); ok && owned {
		ours = parent.Is(by.XR)
	}

	switch {
	case !resource.IsManaged(u):
		err = ErrNotManaged
	case resource.Deleting(u):
		err = fmt.Errorf("%w: once it is gone, adopt it again: from the record of it", ErrDeleting)
	case owned && !ours:
		err = ErrOwned
	case by.XR.GetNamespace() != "" && by.XR.GetNamespace() != u.GetNamespace():
		err = ErrNamespace
	case part == "":
		err = ErrNoPart
	case slices.ContainsFunc(by.Composed, func(o *unstructured.Unstructured) bool {
		return resource.ComposedName(o) == part && o.GetUID() != u.GetUID()
	}):
		err = ErrTwice
	}

	if err != nil {
		return nil, nil, fmt.Errorf("cannot adopt %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	if !ours {
		refs = append(refs, map[string]any{
			fieldAPIVersion: by.XR.GetAPIVersion(), fieldKind: by.XR.GetKind(), fieldName: by.XR.GetName(), "uid": string(by.XR.GetUID()),
			"controller": true, "blockOwnerDeletion": true,
		})
	}

	meta := map[string]any{
		"ownerReferences": refs, "labels": labels(by.XR),
		"annotations": map[string]any{resource.AnnotationComposed: part, v1alpha1.AnnotationRelease: nil},
	}

	if fields := managedFields(u, by.XR); fields != nil {
		meta["managedFields"] = fields
	}

	return patchOf(u, meta), refer(u, by), nil
}

// labels are those that Crossplane gives what an XR is made of.
func labels(xr *unstructured.Unstructured) map[string]any {
	out := map[string]any{labelComposite: xr.GetName(), labelClaimName: nil, labelClaimNamespace: nil}

	if ref := resource.Map(xr.Object, "spec", "claimRef"); ref != nil {
		out[labelClaimName], out[labelClaimNamespace] = resource.String(ref, fieldName), resource.String(ref, "namespace")
	}

	for key := range out {
		if value := xr.GetLabels()[key]; value != "" {
			out[key] = value // An XR below another has those of the topmost.
		}
	}

	return out
}

// refer returns the patch that has an XR refer to a managed resource.
func refer(u *unstructured.Unstructured, by Adopter) map[string]any {
	for _, ref := range resource.Composed(by.XR) {
		if ref.GroupVersionKind() == u.GroupVersionKind() && ref.Name == u.GetName() && ref.Namespace == u.GetNamespace() {
			return nil
		}
	}

	path := []string{"spec", "crossplane", "resourceRefs"}
	if by.Legacy {
		path = []string{"spec", "resourceRefs"}
	}

	ref := map[string]any{fieldAPIVersion: u.GetAPIVersion(), fieldKind: u.GetKind(), fieldName: u.GetName()}
	if by.XR.GetNamespace() == "" && u.GetNamespace() != "" {
		ref["namespace"] = u.GetNamespace()
	}

	list := append(slices.Clone(resource.List(by.XR.Object, path...)), ref)
	patch := patchOf(by.XR, map[string]any{})
	_ = unstructured.SetNestedField(patch, list, path...) // The path is new.

	return patch
}

// composedManager starts the field manager by which Crossplane applies what an
// XR is made of.
const composedManager = "apiextensions.crossplane.io/composed/"

// managedFields hands the fields that the old XR applied on to the new one: else
// a field that the new one takes away later would stay. Nil where nothing
// changes.
//
// Source: crossplane internal/controller/apiextensions/composite,
// ComposedFieldOwnerName.
func managedFields(u, xr *unstructured.Unstructured) []any {
	gk := xr.GroupVersionKind().GroupKind()
	next := fmt.Sprintf("%s%x", composedManager, sha256.Sum256([]byte(xr.GetName()+gk.String())))

	var (
		out     []any
		changed bool
	)

	for _, e := range resource.List(u.Object, fieldMetadata, "managedFields") {
		entry, ok := e.(map[string]any)
		if !ok {
			continue
		}

		switch name := resource.String(entry, "manager"); {
		case name == next:
			return nil // It has applied it before.
		case strings.HasPrefix(name, composedManager) && resource.String(entry, "operation") == "Apply":
			if changed {
				return nil // Of several owners nobody can say whose a field was.
			}

			entry = runtime.DeepCopyJSON(entry)
			entry["manager"] = next
			changed = true
		}

		out = append(out, entry)
	}

	if !changed {
		return nil
	}

	return out
}
