// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

func Example() {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "foo", "generation": int64(7)},
	}}
	deployment.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: `
- kind: ReplicaSet           # a person may write it like this
  mutation: spec.replicas
  generation: 7
  id: "7.0"
  initiator: hans@example.com
  source:
    type: Policy
`})

	list, err := allowance.Parse(deployment)
	if err != nil {
		fmt.Println(err)

		return
	}

	// A newer one of the same takes its place.
	list = allowance.Merge(list, []v1alpha1.Allowance{{
		Kind: "ReplicaSet", Mutation: "spec.replicas", Generation: 8, ID: allowance.ID(8, 0), Initiator: "anna@example.com",
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: "foo-pods", Field: "spec.replicas"},
	}})

	fmt.Println(len(allowance.Unserved(deployment, list)), "still to serve:")
	fmt.Print(allowance.FormatList(list))

	// Output:
	// 1 still to serve:
	// - kind: ReplicaSet
	//   mutation: spec.replicas
	//   generation: 8
	//   id: "8.0"
	//   initiator: anna@example.com
	//   source:
	//     type: Policy
	//     name: foo-pods
	//     field: spec.replicas
}
