// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

func TestWhatIsOrphanedIsReleased(t *testing.T) {
	t.Parallel()

	const (
		deleting = `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`
		user     = `{apiVersion: v1, kind: ConfigMap, name: user, uid: user-uid}`
		two      = `metadata: {ownerReferences: [{apiVersion: example.org/v1, kind: XDatabase, name: xr-old, uid: old-uid, controller: true}, ` + user + `]}`
	)

	dead := func(ref map[string]any) bool { return resource.String(ref, "uid") == "old-uid" }

	type plan = func(*unstructured.Unstructured, orphan.Gone) (map[string]any, error)

	cases := map[string]struct {
		reason, patch, want string
		plan                plan
		gone                orphan.Gone
		err                 error
	}{
		"Release": {
			reason: "The dead owner goes.", plan: orphan.Release, gone: nobody,
			want: `metadata: {resourceVersion: "7", ownerReferences: []}`,
		},
		"OthersStay": {
			reason: "Who is there stays.", patch: two, plan: orphan.Release, gone: dead,
			want: `metadata: {resourceVersion: "7", ownerReferences: [` + user + `]}`,
		},
		"Owned":    {reason: "An owner that is there decides.", plan: orphan.Release, gone: everybody, err: orphan.ErrOwned},
		"Free":     {reason: "There is nothing to do.", patch: `metadata: {ownerReferences: null}`, plan: orphan.Release, gone: nobody, err: orphan.ErrNotLeft},
		"Ending":   {reason: "Nothing can stop its end.", patch: deleting, plan: orphan.Release, gone: nobody, err: orphan.ErrDeleting},
		"NoManged": {reason: "It stands for nothing.", patch: `spec: null`, plan: orphan.Release, gone: nobody, err: orphan.ErrNotManaged},
		"Orphan": {
			reason: "The guard lets it go after this.", plan: orphan.KeepExternal, gone: nobody,
			want: `metadata: {resourceVersion: "7", ownerReferences: [], annotations: {kausality.io/release: orphan}}`,
		},
		"OrphanFree": {
			reason: "It need not have had an owner.", patch: `metadata: {ownerReferences: null}`, plan: orphan.KeepExternal, gone: nobody,
			want: `metadata: {resourceVersion: "7", ownerReferences: [], annotations: {kausality.io/release: orphan}}`,
		},
		"OrphanOwned": {reason: "Its XR would only make it again.", plan: orphan.KeepExternal, gone: everybody, err: orphan.ErrOwned},
		"OrphanEnding": {
			reason: "Deleted past admission, its owner there or not, it is orphaned already.", patch: deleting, plan: orphan.KeepExternal, gone: everybody,
		},
		"OrphanAsked": {
			reason: "Who asked for its end asked for that of the external object.",
			patch:  deleting + "\nspec: {managementPolicies: [Observe, Delete]}", plan: orphan.KeepExternal, gone: nobody, err: orphan.ErrAsked,
		},
		"Provided": {
			reason: "Without its provider only ours is waited for.",
			plan: func(u *unstructured.Unstructured, _ orphan.Gone) (map[string]any, error) {
				return orphan.Unprovided(u), nil
			},
			want: `metadata: {resourceVersion: "7", finalizers: [kausality.io/deletion]}`,
		},
		"Unwaited": {
			reason: "It does not wait.", patch: `metadata: {finalizers: null}`,
			plan: func(u *unstructured.Unstructured, _ orphan.Gone) (map[string]any, error) {
				return orphan.Unprovided(u), nil
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.patch == "" {
				tc.patch = "{}"
			}

			got, err := tc.plan(object(t, tc.patch), tc.gone)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\ngot %v, want %v", tc.reason, err, tc.err)
			}

			var want map[string]any
			if tc.want != "" {
				want = document(t, tc.want)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
