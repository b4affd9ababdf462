// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Fields of objects and of references to them.
const (
	fieldMetadata   = "metadata"
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
	fieldName       = "name"
)

// patchOf returns the merge patch that changes metadata of the version of an
// object that was read.
func patchOf(u *unstructured.Unstructured, metadata map[string]any) map[string]any {
	metadata["resourceVersion"] = u.GetResourceVersion()

	return map[string]any{fieldMetadata: metadata}
}
