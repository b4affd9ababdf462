// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// windowPrefix starts the initiator of what a window allows.
const windowPrefix = "UpgradeAllowance/"

// InitiatorOfWindow is who starts what an UpgradeAllowance allows, as it is
// written in traces.
func InitiatorOfWindow(name string) string { return windowPrefix + name }

// A Window is an UpgradeAllowance of which the selector and the paths are parsed.
type Window struct {
	// Object is the UpgradeAllowance, with its status; not to be modified.
	Object *v1alpha1.UpgradeAllowance

	terms *WindowTerms
}

// WindowTerms are what of an UpgradeAllowance follows from its spec.
type WindowTerms struct {
	// selector is nil where the window selects nothing in particular.
	selector labels.Selector
	changes  []windowChanges
	external []v1alpha1.Allowance
}

// windowChanges are the changes of a kind that a window allows.
type windowChanges struct {
	group, kind string
	patterns    []change.Pattern
}

// TermsOf parses what an UpgradeAllowance says. The error is about a selector or a path
// that does not parse.
func TermsOf(u *v1alpha1.UpgradeAllowance) (*WindowTerms, error) {
	out := &WindowTerms{}

	if u.Spec.Selector != nil {
		sel, err := metav1.LabelSelectorAsSelector(u.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("spec.selector: %w", err)
		}

		out.selector = sel
	}

	for i, perm := range u.Spec.Allow {
		if perm.Relation == v1alpha1.RelationExternal {
			out.external = append(out.external, v1alpha1.Allowance{
				Relation: perm.Relation, Mutations: perm.Mutations, Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceWindow, Name: u.GetName()},
			})

			continue
		}

		c := windowChanges{group: perm.APIGroup, kind: perm.Kind}

		for j, text := range perm.Mutations {
			p, err := change.ParsePattern(text)
			if err != nil {
				return nil, fmt.Errorf("spec.allow[%d].mutations[%d]: %w", i, j, err)
			}

			c.patterns = append(c.patterns, p)
		}

		out.changes = append(out.changes, c)
	}

	return out, nil
}

// Of is the window of an UpgradeAllowance that has these terms.
func (t *WindowTerms) Of(u *v1alpha1.UpgradeAllowance) *Window {
	return &Window{Object: u, terms: t}
}

// InForce reports whether it may be used at a moment.
func (w *Window) InForce(now time.Time) bool { return InForce(w.Object, now) }

// Selects reports whether it is about an object, see [Selects].
func (w *Window) Selects(versions ...*unstructured.Unstructured) bool {
	return inNamespaces(w.Object, versions[0]) && (w.terms.selector == nil || matches(w.terms.selector, versions))
}

// SelectsBy reports whether it selects objects by a label.
func (w *Window) SelectsBy(label string) bool {
	return w.terms.selector != nil && policy.Reads(w.terms.selector, label)
}

// Covers reports whether it allows a change of an object of a kind.
func (w *Window) Covers(gk schema.GroupKind, c change.Change) bool {
	return slices.ContainsFunc(w.terms.changes, func(a windowChanges) bool {
		return a.kind == gk.Kind && (a.group == "" || a.group == gk.Group) &&
			slices.ContainsFunc(a.patterns, func(p change.Pattern) bool { return p.CoversChange(c) })
	})
}

// External are the actions of providers and of other systems that come with a change
// which it allows; not to be modified.
func (w *Window) External() []v1alpha1.Allowance { return w.terms.external }

// InForce reports whether a window may be used at a moment.
func InForce(w *v1alpha1.UpgradeAllowance, now time.Time) bool {
	return !w.Spec.Suspend && !now.Before(w.Spec.ValidFrom.Time) && now.Before(w.Spec.ValidUntil.Time) &&
		(w.Spec.ActivateWhen == nil || activated(w))
}

// activated reports whether the new logic was seen to run, for what the window
// asks for now: its status may be about what it asked for before.
func activated(w *v1alpha1.UpgradeAllowance) bool {
	return w.Status.Active && w.Status.ObservedGeneration == w.GetGeneration()
}

// Selects reports whether a window is about an object, as that is and, where it is
// changed, as it was: no write brings itself under a window.
func Selects(w *v1alpha1.UpgradeAllowance, versions ...*unstructured.Unstructured) bool {
	if !inNamespaces(w, versions[0]) || w.Spec.Selector == nil {
		return inNamespaces(w, versions[0])
	}

	sel, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)

	return err == nil && matches(sel, versions)
}

// inNamespaces reports whether an object is in one of the namespaces that a window
// names, if it does.
func inNamespaces(w *v1alpha1.UpgradeAllowance, u *unstructured.Unstructured) bool {
	return len(w.Spec.Namespaces) == 0 || slices.Contains(w.Spec.Namespaces, u.GetNamespace())
}

// matches reports whether a selector matches each version of an object that there is.
func matches(sel labels.Selector, versions []*unstructured.Unstructured) bool {
	return !slices.ContainsFunc(versions, func(u *unstructured.Unstructured) bool {
		return u != nil && !sel.Matches(labels.Set(u.GetLabels()))
	})
}

// ActionsOfWindow are the actions that a window gives by itself to what it
// selects; none where it is about anything else, or selects nothing. Deletions are
// not among them: they take an object that is deleted.
func ActionsOfWindow(w *v1alpha1.UpgradeAllowance) []string {
	if w.Spec.Selector == nil {
		return nil
	}

	var out []string

	for _, perm := range w.Spec.Allow {
		if perm.Relation != v1alpha1.RelationExternal {
			return nil
		}

		out = append(out, perm.Mutations...)
	}

	return slices.DeleteFunc(out, deletes)
}

// deletes reports whether an action deletes what is outside, as the systems that are
// known call it.
func deletes(action string) bool {
	return slices.ContainsFunc([]string{"delete", "destroy", "prune", "uninstall"}, func(name string) bool {
		return strings.EqualFold(action, name)
	})
}
