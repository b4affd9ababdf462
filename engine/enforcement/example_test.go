// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func Example() {
	until := time.Date(2026, time.December, 31, 0, 0, 0, 0, time.UTC)
	in := &v1alpha1.Enforcement{Spec: v1alpha1.EnforcementSpec{
		Match: v1alpha1.EnforcementMatch{ResourceRules: []v1alpha1.ResourceRule{
			{APIGroups: []string{"rds.aws.upbound.io"}, Resources: []string{"*"}},
		}},
		ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ActionDeny},
		Exceptions: []v1alpha1.Exception{{
			Name: "migration", Reason: "INFRA-7", Until: metav1.NewTime(until), Mutations: []string{"delete"},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "dba"}},
		}},
	}}

	e, errs := enforcement.Compile(in)
	if len(errs) > 0 {
		fmt.Println(errs.ToAggregate())

		return
	}

	governs, _ := e.Governs(enforcement.Target{
		Resource: schema.GroupResource{Group: "rds.aws.upbound.io", Resource: "instances"}, Operation: v1alpha1.OperationDelete,
	}, expression.Input{})
	fmt.Println("governs:", governs, e.Action())

	dora := policy.User{Name: "dora", Groups: []string{"dba"}}
	fmt.Println("before:", e.Exception(dora, change.Delete(), until.Add(-time.Second)).Reason)
	fmt.Println("after:", e.Exception(dora, change.Delete(), until) != nil)

	// Output:
	// governs: true Deny
	// before: INFRA-7
	// after: false
}
