// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// NeverByBinding reports of a subject whether it initiates nothing by a binding, by whether
// a user does, by name. Who is in a group is not known.
func NeverByBinding(initiates func(user string) bool) func(v1alpha1.Subject) bool {
	return func(s v1alpha1.Subject) bool {
		switch s.Kind {
		case v1alpha1.SubjectUser:
			return !initiates(s.Name)
		case v1alpha1.SubjectServiceAccount:
			return !initiates(serviceaccount.MakeUsername(s.Namespace, s.Name))
		default:
			return false
		}
	}
}

// checkSubjects finds the subjects of a binding for which never is true.
func checkSubjects(list []v1alpha1.Subject, never func(v1alpha1.Subject) bool) []Finding {
	var out []Finding

	for i, s := range list {
		if never(s) {
			out = append(out, found(BindingSubject, field.NewPath("spec", "subjects").Index(i).String(),
				"Crossplane, its providers, Kausality and Kubernetes' own controllers initiate nothing by a binding"))
		}
	}

	return out
}

// checkApprovals says where nothing waits for the approvals that a policy asks for: where
// nobody initiates by it, and of creations and deletions, which are made or refused at once.
func checkApprovals(p *v1alpha1.AllowancePolicySpec) []Finding {
	if policy.RequiredApprovals(p) == 0 {
		return nil
	}

	if !policy.HasInitiators(p) {
		return []Finding{found(ApprovalIdle, "spec.approval", "nobody initiates anything "+
			"by the policy, so that there is nothing to approve: give a subject mayInitiate: true, or leave approval out")}
	}

	var out []Finding

	for i, text := range p.Match.Fields {
		if text == v1alpha1.MutationCreate || text == v1alpha1.MutationDelete {
			out = append(out, found(ApprovalIdle, field.NewPath("spec", "match", "fields").Index(i).String(),
				fmt.Sprintf("it does not wait for approvals: while the policy asks for them, nobody may %s an object by it; "+
					"name it in a policy without approval", text)))
		}
	}

	return out
}
