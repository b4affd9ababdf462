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

const (
	xrNew = `
apiVersion: example.org/v1
kind: XDatabase
metadata: {name: xr-new, namespace: shop, uid: new-uid, resourceVersion: "40"}
spec: {crossplane: {resourceRefs: [{apiVersion: v1, kind: ConfigMap, name: note}]}}`

	xrClaimed = `
apiVersion: example.org/v1
kind: XDatabase
metadata: {name: xr-new, uid: new-uid, resourceVersion: "40"}
spec: {claimRef: {name: new, namespace: team}}`

	owned = `[{apiVersion: example.org/v1, kind: XDatabase, name: xr-new, uid: new-uid, controller: true, blockOwnerDeletion: true}]`

	// By sha256 of xr-newXDatabase.example.org.
	managerNew = "apiextensions.crossplane.io/composed/3cd94346a75cceddcf618a6e3ee429488cdf7eb3f8e483eaec02acb8d512c749"
)

func TestAnXRAdoptsWhatWasOrphaned(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason, patch, xr, part string
		legacy                  bool
		gone                    orphan.Gone
		managed, composite      string
	}{
		"Namespaced": {
			reason: "The dead owner makes room for the new one, and the XR refers to one more.",
			xr:     xrNew, gone: nobody,
			managed: `metadata: {resourceVersion: "7", ownerReferences: ` + owned + `,
				labels: {crossplane.io/composite: xr-new, crossplane.io/claim-name: null, crossplane.io/claim-namespace: null},
				annotations: {crossplane.io/composition-resource-name: database, kausality.io/release: null}}`,
			composite: `{metadata: {resourceVersion: "40"}, spec: {crossplane: {resourceRefs: [{apiVersion: v1, kind: ConfigMap, name: note},
				{apiVersion: rds.aws.upbound.io/v1beta1, kind: RDSInstance, name: db-1}]}}}`,
		},
		"Legacy": {
			reason: "Of a cluster-scoped XR the labels name the Claim, and the reference the namespace.",
			xr:     xrClaimed, legacy: true, gone: nobody, part: "other",
			managed: `metadata: {resourceVersion: "7", ownerReferences: ` + owned + `,
				labels: {crossplane.io/composite: xr-new, crossplane.io/claim-name: new, crossplane.io/claim-namespace: team},
				annotations: {crossplane.io/composition-resource-name: other, kausality.io/release: null}}`,
			composite: `{metadata: {resourceVersion: "40"}, spec: {resourceRefs: [{apiVersion: rds.aws.upbound.io/v1beta1, kind: RDSInstance, name: db-1, namespace: shop}]}}`,
		},
		"Again": {
			reason: "What was adopted half-way is adopted to the end.",
			patch:  `metadata: {ownerReferences: ` + owned + `}`, xr: xrNew, gone: everybody,
			managed: `metadata: {resourceVersion: "7", ownerReferences: ` + owned + `,
				labels: {crossplane.io/composite: xr-new, crossplane.io/claim-name: null, crossplane.io/claim-namespace: null},
				annotations: {crossplane.io/composition-resource-name: database, kausality.io/release: null}}`,
			composite: `{metadata: {resourceVersion: "40"}, spec: {crossplane: {resourceRefs: [{apiVersion: v1, kind: ConfigMap, name: note},
				{apiVersion: rds.aws.upbound.io/v1beta1, kind: RDSInstance, name: db-1}]}}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			xr := &unstructured.Unstructured{Object: document(t, tc.xr)}

			managed, composite, err := orphan.Adopt(object(t, "{"+tc.patch+"}"), orphan.Adopter{XR: xr, Legacy: tc.legacy}, tc.part, tc.gone)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(document(t, tc.managed), managed); diff != "" {
				t.Errorf("%s\nmanaged, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(document(t, tc.composite), composite); diff != "" {
				t.Errorf("%s\ncomposite, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnXRThatRefersToItAlreadyIsLeftAlone(t *testing.T) {
	t.Parallel()

	xr := &unstructured.Unstructured{Object: merge(document(t, xrNew), document(t,
		`spec: {crossplane: {resourceRefs: [{apiVersion: rds.aws.upbound.io/v1beta1, kind: RDSInstance, name: db-1}]}}`))}

	if _, composite, err := orphan.Adopt(object(t, `{}`), orphan.Adopter{XR: xr}, "", nobody); err != nil || composite != nil {
		t.Errorf("patch %v, error %v", composite, err)
	}
}

func TestTheFieldsOfTheOldXRBecomeTheNewOnes(t *testing.T) {
	t.Parallel()

	const (
		old   = `{manager: apiextensions.crossplane.io/composed/abc, operation: Apply, fieldsV1: {"f:spec": {}}}`
		next  = `{manager: ` + managerNew + `, operation: Apply, fieldsV1: {"f:spec": {}}}`
		other = `{manager: kausality-gate, operation: Apply}`
	)

	for name, tc := range map[string]struct{ have, want string }{
		"Handed on":   {have: other + ", " + old, want: "[" + other + ", " + next + "]"},
		"None":        {have: other},
		"Its own":     {have: old + ", " + next},
		"Two owners":  {have: old + ", " + `{manager: apiextensions.crossplane.io/composed/def, operation: Apply}`},
		"Nobody's":    {have: ""},
		"Not applied": {have: `{manager: apiextensions.crossplane.io/composed/abc, operation: Update}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			xr := &unstructured.Unstructured{Object: document(t, xrNew)}

			managed, _, err := orphan.Adopt(object(t, `metadata: {managedFields: [`+tc.have+`]}`), orphan.Adopter{XR: xr}, "", nobody)
			if err != nil {
				t.Fatal(err)
			}

			got := resource.List(managed, "metadata", "managedFields")

			var want []any
			if tc.want != "" {
				want = resource.List(document(t, "list: "+tc.want), "list")
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotOrphanedIsNotAdopted(t *testing.T) {
	t.Parallel()

	second := &unstructured.Unstructured{Object: document(t, `{kind: RDSInstance, metadata: {name: db-2, uid: second,
		annotations: {crossplane.io/composition-resource-name: database}}}`)}

	cases := map[string]struct {
		reason, patch, xr string
		gone              orphan.Gone
		composed          []*unstructured.Unstructured
		want              error
	}{
		"Owned":     {reason: "Another XR is there.", xr: xrNew, gone: everybody, want: orphan.ErrOwned},
		"Deleting":  {reason: "Nothing can stop its end.", patch: `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`, xr: xrNew, gone: nobody, want: orphan.ErrDeleting},
		"Elsewhere": {reason: "A namespaced XR has parts in its own namespace.", patch: `metadata: {namespace: other}`, xr: xrNew, gone: nobody, want: orphan.ErrNamespace},
		"Nameless":  {reason: "Crossplane goes by the name in the Composition.", patch: `metadata: {annotations: {crossplane.io/composition-resource-name: null}}`, xr: xrNew, gone: nobody, want: orphan.ErrNoPart},
		"Twice":     {reason: "There is another one in its place.", xr: xrNew, gone: nobody, composed: []*unstructured.Unstructured{second}, want: orphan.ErrTwice},
		"Unmanaged": {reason: "A ConfigMap stands for nothing.", patch: `spec: null`, xr: xrNew, gone: nobody, want: orphan.ErrNotManaged},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			by := orphan.Adopter{XR: &unstructured.Unstructured{Object: document(t, tc.xr)}, Composed: tc.composed}

			if _, _, err := orphan.Adopt(object(t, "{"+tc.patch+"}"), by, "", tc.gone); !errors.Is(err, tc.want) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}
