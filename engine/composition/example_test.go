// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func Example() {
	bucket := func(class string, meta map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "s3.example.org/v1", "kind": "Bucket", "metadata": meta,
			"spec": map[string]any{"forProvider": map[string]any{"class": class}},
		}}
	}

	out := composition.Decide(composition.Request{
		XR: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "XStore",
			"metadata": map[string]any{"name": "store", "annotations": map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`}},
		}},
		Name:     "bucket",
		Observed: bucket("standard", map[string]any{"name": "store-bucket", "generation": int64(3)}),
		Desired:  bucket("cold", nil), // A Composition was updated, and that is not allowed.
		User:     policy.User{Name: "system:serviceaccount:crossplane-system:crossplane"},
		Mode:     v1alpha1.ModeHold,
	})

	class, _, _ := unstructured.NestedString(out.Desired.Object, "spec", "forProvider", "class")
	fmt.Println("applied:", class)
	fmt.Println(out.Held[0])

	// Output:
	// applied: standard
	// spec.forProvider.class of Bucket store-bucket (standard → cold); no policy about XStore allows it
}
