// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Release returns the merge patch that has a managed resource stand by itself:
// without references to owners that are gone, so that nothing tries to delete it
// with them. Its gate stays as it is.
func Release(u *unstructured.Unstructured, gone Gone) (map[string]any, error) {
	refs, owned, lost := owners(u, gone)

	if err := releasable(u, owned); err != nil {
		return nil, err
	}

	switch {
	case resource.Deleting(u):
		return nil, fmt.Errorf("cannot release %s %q: %w: it can only be orphaned, and adopted again", u.GetKind(), u.GetName(), ErrDeleting)
	case lost == 0:
		return nil, fmt.Errorf("cannot release %s %q: %w", u.GetKind(), u.GetName(), ErrNotLeft)
	}

	return patchOf(u, map[string]any{"ownerReferences": refs}), nil
}

// KeepExternal returns the merge patch after which a managed resource can be deleted
// while the external object stays, or where that is to be, and waits for its gate, goes so. Nil where that stays anyway.
func KeepExternal(u *unstructured.Unstructured, gone Gone) (map[string]any, error) {
	refs, owned, _ := owners(u, gone)
	deleting, awaited := resource.Deleting(u), gate.AwaitsDelete(u)

	if err := releasable(u, owned && !deleting && !awaited); err != nil {
		return nil, err
	}

	switch {
	case deleting && gate.MayDelete(u) && !managed.Orphans(u):
		return nil, fmt.Errorf("cannot orphan what %s %q stands for: %w", u.GetKind(), u.GetName(), ErrAsked)
	case deleting && !awaited:
		return nil, nil //nolint:nilnil // Nothing to do is no error.
	}

	patch := map[string]any{"annotations": map[string]any{v1alpha1.AnnotationRelease: v1alpha1.ReleaseOrphan}}
	if !deleting && !owned {
		patch["ownerReferences"] = refs
	}

	return patchOf(u, patch), nil
}

// releasable reports whether a person may decide what becomes of a managed
// resource.
func releasable(u *unstructured.Unstructured, owned bool) error {
	switch {
	case !resource.IsManaged(u):
		return fmt.Errorf("cannot release %s %q: %w", u.GetKind(), u.GetName(), ErrNotManaged)
	case owned:
		return fmt.Errorf("cannot release %s %q: %w", u.GetKind(), u.GetName(), ErrOwned)
	default:
		return nil
	}
}

// Unprovided returns the merge patch that lets a managed resource go that waits
// for its provider; nil where it does not. It is for a provider that is there no
// more: nobody else can release the external object.
func Unprovided(u *unstructured.Unstructured) map[string]any {
	list := u.GetFinalizers()
	if !slices.Contains(list, managed.ProviderFinalizer) {
		return nil
	}

	left := []any{}

	for _, f := range list {
		if f != managed.ProviderFinalizer {
			left = append(left, f)
		}
	}

	return patchOf(u, map[string]any{"finalizers": left})
}
