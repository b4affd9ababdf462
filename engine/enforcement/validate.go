// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// Validate finds what would prevent an Enforcement from being used as it says, with the
// path of each field that is wrong: it is refused when it is written.
func Validate(e *v1alpha1.Enforcement) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSelector(e.Spec.Match.ObjectSelector, spec.Child("match", "objectSelector"))
	errs = append(errs, validateSelector(e.Spec.Match.NamespaceSelector, spec.Child("match", "namespaceSelector"))...)

	for i, c := range e.Spec.MatchConditions {
		if _, err := expression.Compile(c.Expression); err != nil {
			errs = append(errs, field.Invalid(spec.Child("matchConditions").Index(i).Child("expression"), c.Expression, err.Error()))
		}
	}

	for i, x := range e.Spec.Exceptions {
		for j, m := range x.Mutations {
			if _, err := change.ParsePattern(m); err != nil {
				errs = append(errs, field.Invalid(spec.Child("exceptions").Index(i).Child("mutations").Index(j), m, err.Error()))
			}
		}
	}

	return errs
}

func validateSelector(sel *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(sel, metav1validation.LabelSelectorValidationOptions{}, at)
}
