// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
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
