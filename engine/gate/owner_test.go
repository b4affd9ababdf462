// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

func TestTheGateStaysOwnedWhereAnotherSetIsNotStored(t *testing.T) {
	const (
		crossplane = `{manager: crossplane, operation: Apply, fieldsV1: {"f:spec": {"f:managementPolicies": {}}}}`
		owner      = `{manager: kausality-gate, operation: Apply, fieldsV1: {"f:metadata": {"f:annotations": {}}, "f:spec": {"f:managementPolicies": {}}}}`
		robbed     = `{manager: kausality-gate, operation: Apply, fieldsV1: {"f:metadata": {"f:annotations": {}}}}`
		other      = `{manager: kausality-gate, operation: Apply, subresource: status, fieldsV1: {"f:spec": {"f:managementPolicies": {}}}}`
		update     = `{manager: kausality-gate, operation: Update, fieldsV1: {"f:spec": {"f:managementPolicies": {}}}}`
		beside     = `{manager: kausality-gate, operation: Apply, fieldsV1: {"f:spec": {"f:other": {}}}}`
		both       = `{manager: kausality-gate, operation: Apply, fieldsV1: {"f:spec": {"f:other": {}, "f:managementPolicies": {}}}}`
	)

	for name, tc := range map[string]struct {
		reason         string
		old, obj, want string
	}{
		"Taken":       {reason: "Crossplane took it over.", old: owner, obj: crossplane + "," + robbed, want: crossplane + "," + owner},
		"OthersStay":  {reason: "What else it owns in the spec is its own still.", old: owner, obj: beside, want: both},
		"Owned":       {reason: "It owns the field still.", old: owner, obj: crossplane + "," + owner},
		"NeverOwned":  {reason: "There is nothing to restore.", old: robbed, obj: crossplane + "," + robbed},
		"NoEntry":     {reason: "Without its annotations there is no gate.", old: owner, obj: crossplane},
		"Subresource": {reason: "A status does not own the spec.", old: other, obj: robbed},
		"Updated":     {reason: "Only what it applied is its own.", old: update, obj: robbed},
		"Untold":      {reason: "Nobody tells who owns what.", old: "", obj: ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := managedBy(t, tc.obj)
			before := obj.DeepCopy()

			var want []any
			if tc.want != "" {
				want, _, _ = unstructured.NestedSlice(managedBy(t, tc.want).Object, "metadata", "managedFields")
			}

			if diff := cmp.Diff(want, gate.StayOwned(managedBy(t, tc.old), obj)); diff != "" {
				t.Errorf("%s\nmanagedFields, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(before, obj); diff != "" {
				t.Errorf("the object was changed, -want, +got:\n%s", diff)
			}
		})
	}
}

func managedBy(t *testing.T, entries string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{metadata: {managedFields: ["+entries+"]}}"), &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}
