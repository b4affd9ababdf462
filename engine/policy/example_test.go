// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func Example() {
	in := &v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
		Match: v1alpha1.Match{
			Kind: "DatabaseClaim", Fields: []string{"spec.size"},
			CEL:     []string{"has(object.metadata.annotations['jira'])"},
			Capture: []string{"metadata.annotations[jira]"},
		},
		Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
		Allow:    []v1alpha1.Permission{{Kind: "XDatabase", Mutations: []string{"spec.size"}}},
	}}
	in.SetName("database-claim-to-xr")

	compiled, errs := policy.Compile(in)
	if len(errs) > 0 {
		fmt.Println(errs.ToAggregate())

		return
	}

	was := map[string]any{"spec": map[string]any{"size": "small"}}
	is := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"size": "large"}}
	c := change.Between(was, is)[0]

	for _, p := range policy.NewSet(compiled).For(schema.GroupKind{Group: "example.org", Kind: "DatabaseClaim"}) {
		fmt.Println(p.Name(), "names", c.Field, p.Names(c))
		fmt.Println(p.Evaluate(expression.Input{Object: is, OldObject: was}).Missing)

		is["metadata"] = map[string]any{"annotations": map[string]any{"jira": "INFRA-7"}}
		fmt.Println(p.Evaluate(expression.Input{Object: is, OldObject: was}).Met, p.Attestations(is))
	}

	// Output:
	// database-claim-to-xr names spec.size true
	// CEL "has(object.metadata.annotations['jira'])" is false
	// true map[metadata.annotations[jira]:INFRA-7]
}
