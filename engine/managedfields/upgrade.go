// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Upgraded reports whether Crossplane applies a live object without writing to it
// before: where it never applied the object it first takes away all managers of
// fields, and later on the one that the API server put in their place.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0, internal/ssa/managed_fields.go.
func Upgraded(u *unstructured.Unstructured) bool {
	applied := false

	for _, e := range resource.List(u.Object, "metadata", "managedFields") {
		m, _ := e.(map[string]any)

		switch manager := resource.String(m, "manager"); {
		case manager == "before-first-apply":
			return false
		case strings.HasPrefix(manager, ComposedManager):
			applied = true
		}
	}

	return applied
}
