// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Validate finds what would prevent a window from being used, with the path of
// each field that is wrong.
func Validate(u *v1alpha1.UpgradeAllowance) field.ErrorList {
	spec := field.NewPath("spec")
	errs := policy.CheckPermissions(u.Spec.Allow, spec.Child("allow"))

	if !u.Spec.ValidFrom.Before(&u.Spec.ValidUntil) {
		errs = append(errs, field.Invalid(spec.Child("validUntil"), rfc3339(u.Spec.ValidUntil.Time), "must be after validFrom"))
	}

	errs = append(errs, ValidateSelector(u.Spec.Selector, spec.Child("selector"))...)

	if when := u.Spec.ActivateWhen; when != nil {
		errs = append(errs, validateActivation(when, spec.Child("activateWhen"))...)
	}

	return errs
}

// Warnings say what of a window that can be used does nothing.
func Warnings(u *v1alpha1.UpgradeAllowance) []string {
	outside := !slices.ContainsFunc(u.Spec.Allow, func(a v1alpha1.Permission) bool { return a.Relation != v1alpha1.RelationExternal })

	switch {
	case !outside:
		return nil
	case u.Spec.Selector == nil:
		return []string{"spec.selector: the window allows only External actions and selects nothing, so it opens no gate: " +
			"select managed resources by their labels, or all of them with {}"}
	case len(allowance.ActionsOfWindow(u)) == 0:
		return []string{"spec.allow: a window alone allows no deletion, so it opens no gate: " +
			"delete the objects, under a policy about their deletion"}
	default:
		return nil
	}
}

// validateActivation checks what the API server checks too, for whoever has an
// object from elsewhere, and the labels.
func validateActivation(when *v1alpha1.ActivateWhen, at *field.Path) field.ErrorList {
	if (when.PodSelector != nil) == (when.ControllerRef != nil) {
		return field.ErrorList{field.Invalid(at, "", "exactly one of podSelector and controllerRef is required")}
	}

	if when.PodSelector == nil {
		return nil
	}

	return metav1validation.ValidateLabels(when.PodSelector.Labels, at.Child("podSelector", "labels"))
}

// ValidateSelector checks a label selector.
func ValidateSelector(sel *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(sel, metav1validation.LabelSelectorValidationOptions{}, at)
}
