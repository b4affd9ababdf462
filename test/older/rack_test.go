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
}
