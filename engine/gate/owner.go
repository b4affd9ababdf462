// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Manager is the field manager that owns spec.managementPolicies of governed managed
// resources.
const Manager = "kausality-gate"

// StayOwned returns the managedFields of an object in which Manager owns
// spec.managementPolicies, where it did in the old version and does not in the new
// one; nil where there is nothing to change. Whoever applies another set takes the
// field over, also where that set is not stored. A field that one manager owns alone
// falls back to its default as soon as that manager leaves it out, and the default is
// a gate that is open for everything.
func StayOwned(old, obj *unstructured.Unstructured) []any {
	_, was := ownedBy(old)
	at, is := ownedBy(obj)

	if was == nil || is != nil || at < 0 {
		return nil
	}

	out := slices.Clone(resource.List(obj.Object, "metadata", "managedFields"))

	e, _ := out[at].(map[string]any)
	entry := maps.Clone(e)
	fields := maps.Clone(resource.Map(entry, "fieldsV1"))
	spec := maps.Clone(resource.Map(fields, "f:spec"))

	if fields == nil {
		fields = map[string]any{}
	}

	if spec == nil {
		spec = map[string]any{}
	}

	spec["f:managementPolicies"] = was
	fields["f:spec"] = spec
	entry["fieldsV1"] = fields
	out[at] = entry

	return out
}

// ownedBy returns which entry of managedFields is what Manager applied, -1 for none,
// and what that says of spec.managementPolicies, nil for nothing.
func ownedBy(u *unstructured.Unstructured) (int, any) {
	for i, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, ok := e.(map[string]any)
		if !ok || resource.String(m, "manager") != Manager || resource.String(m, "operation") != "Apply" ||
			resource.String(m, "subresource") != "" {
			continue
		}

		fields, _ := resource.Value(m, "fieldsV1", "f:spec", "f:managementPolicies")

		return i, fields
	}

	return -1, nil
}
