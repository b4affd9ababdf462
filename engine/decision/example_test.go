// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func Example() {
	in := &v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match:    v1alpha1.Match{Kind: "DatabaseClaim", Fields: []string{"spec.size"}},
		Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
		Allow:    []v1alpha1.Permission{{Kind: "XDatabase", Mutations: []string{"spec.size"}}},
	}}
	in.SetName("database-claim-to-xr")

	compiled, errs := policy.Compile(in)
	if len(errs) > 0 {
		fmt.Println(errs.ToAggregate())

		return
	}

	claim := func(size string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1alpha1", "kind": "DatabaseClaim",
			"metadata": map[string]any{"name": "my-database", "namespace": "default", "generation": int64(4)},
			"spec":     map[string]any{"size": size},
		}}
	}
	req := request.Request{
		Operation: request.OperationUpdate, Old: claim("small"), New: claim("large"),
		User:  policy.User{Name: "hans@example.com", Groups: []string{"platform-team"}},
		Basis: request.Basis{Policies: policy.NewSet(compiled), Now: time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC)},
	}

	d := decision.Decide(req)
	fmt.Println(d.Findings[0].Change.Field, d.Findings[0].Verdict, d.Findings[0].Rule)
	fmt.Print(d.Object.GetAnnotations()[v1alpha1.AnnotationAllowances])

	req.User = policy.User{Name: "anna@example.com"}
	d = decision.Decide(req)
	fmt.Println(d.Findings[0].Verdict, d.Findings[0].Missing())

	// Output:
	// spec.size Allowed Initiate
	// - kind: XDatabase
	//   mutation: spec.size
	//   generation: 5
	//   id: "5.0"
	//   initiator: hans@example.com
	//   policy: database-claim-to-xr
	//   source:
	//     type: Policy
	//     name: database-claim-to-xr
	//     field: spec.size
	//   trace:
	//   - kind: DatabaseClaim
	//     name: my-database
	//     generation: 5
	//     field: spec.size
	// Unallowed policy "database-claim-to-xr": only Group platform-team may, not anna@example.com
}
