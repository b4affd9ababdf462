// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package older_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestARackOfManyKindsIsMade has the function ask for so much that Crossplane 1.20
// would see its requirements change each time if it got them in a field that it
// does not know. Most of what is composed is no managed resource.
func TestARackOfManyKindsIsMade(t *testing.T) {
	world.Long(t)

	t.Parallel()

	const composed = 7

	admin := define(t)
	hans := world.ConnectAs(t, running, "hans")

	xr := world.Prototype(kind("XRack"))
	xr.SetName("rack")
	xr.Object["spec"] = map[string]any{"size": int64(1)}

	world.Eventually(t, "an XR", func(ctx context.Context) error { return hans.Create(ctx, xr.DeepCopy()) })

	made := func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(xr), xr); err != nil {
			return err
		}

		refs, _, err := unstructured.NestedSlice(xr.Object, "spec", "resourceRefs")
		if err == nil && len(refs) != composed {
			err = fmt.Errorf("%d resources are composed, want %d: %w", len(refs), composed, world.ErrOther)
		}

		return errors.Join(err, synced(xr, "True"), isOutside(xr.GetName(), 1))
	}

	world.Eventually(t, "a rack", made)
	stays(t, "the rack", made)

	// What somebody changes or deletes of what has no gate is put right, and then nobody writes it any more.
	class, uid := &unstructured.Unstructured{}, types.UID("")

	healed := func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClassList"})

		if err := admin.List(ctx, list, client.MatchingLabels{"crossplane.io/composite": xr.GetName()}); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d classes: %w", len(list.Items), errors.Join(err, world.ErrOther))
		}

		*class = list.Items[0]

		if is := class.Object["description"]; is != "composed" || class.GetUID() == uid {
			return fmt.Errorf("it is %s, and says %v: %w", class.GetUID(), is, world.ErrOther)
		}

		return nil
	}

	world.Eventually(t, "a class", healed)

	if err := admin.Patch(t.Context(), class.DeepCopy(), world.Merge(`{"description": "by hand"}`), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "a class that is as it was", healed)
	stays(t, "the class", healed)

	uid = class.GetUID()
	if err := admin.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "another class", healed)
	stays(t, "that class", healed)
}
