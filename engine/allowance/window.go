// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// windowPrefix starts the initiator of what a window allows.
const windowPrefix = "UpgradeAllowance/"

// InitiatorOfWindow is who starts what an UpgradeAllowance allows, as it is
// written in traces.
func InitiatorOfWindow(name string) string { return windowPrefix + name }

// OfWindow says whether a managed resource carries an allowance because a window
// allowed its change: then a window gave it, and no policy of that name. What a
// policy gave because of a change under a window has a longer path.
func OfWindow(a v1alpha1.Allowance) bool {
	return External(a) && len(a.Trace) == 1 && a.Initiator == InitiatorOfWindow(a.Policy)
}

// FieldOutside stands in the trace of an allowance that a window gave by itself,
// and not because a field of the resource changed.
const FieldOutside = string(v1alpha1.RelationExternal)

// OfWindowAlone says whether a window gave a managed resource an allowance by
// itself.
func OfWindowAlone(a v1alpha1.Allowance) bool { return OfWindow(a) && grantingField(a) == FieldOutside }

// InForce says whether a window may be used at a moment.
func InForce(w *v1alpha1.UpgradeAllowance, now time.Time) bool {
	return !w.Spec.Suspend && !now.Before(w.Spec.ValidFrom.Time) && now.Before(w.Spec.ValidUntil.Time) &&
		(w.Spec.ActivateWhen == nil || activated(w))
}

// activated says whether the new logic was seen to run, for what the window
// asks for now: its status may be about what it asked for before.
func activated(w *v1alpha1.UpgradeAllowance) bool {
	return w.Status.Active && w.Status.ObservedGeneration == w.GetGeneration()
}

// Selects says whether a window is about an object, as that is and, where it is
// changed, as it was: no write brings itself under a window.
func Selects(w *v1alpha1.UpgradeAllowance, versions ...*unstructured.Unstructured) bool {
	if u := versions[0]; len(w.Spec.Namespaces) > 0 && !slices.Contains(w.Spec.Namespaces, u.GetNamespace()) {
		return false
	}

	if w.Spec.Selector == nil {
		return true
	}

	sel, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)

	return err == nil && !slices.ContainsFunc(versions, func(u *unstructured.Unstructured) bool {
		return u != nil && !sel.Matches(labels.Set(u.GetLabels()))
	})
}
