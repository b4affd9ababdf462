// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Enforcement is a compiled Enforcement.
type Enforcement struct {
	name       string
	generation int64
	spec       v1alpha1.EnforcementSpec
	objects    labels.Selector
	namespaces labels.Selector
	conditions []*expression.Expression
	// now is true where one of these may read the time of the decision.
	now bool
	// excepted are what exceptions are about, in their order.
	excepted [][]change.Pattern
	broken   []string
}

// Name of the Enforcement.
func (e *Enforcement) Name() string { return e.name }

// Generation of the Enforcement; zero where its source names none.
func (e *Enforcement) Generation() int64 { return e.generation }

// of is the Enforcement as of a generation: others may have had the same content.
func (e *Enforcement) of(generation int64) *Enforcement {
	if e.generation == generation {
		return e
	}

	out := *e
	out.generation = generation

	return &out
}

// Spec the Enforcement was compiled from; not to be modified.
func (e *Enforcement) Spec() *v1alpha1.EnforcementSpec { return &e.spec }

// Compile compiles an Enforcement. The errors carry the path of each field that
// is wrong, as field.Error; with any, the Enforcement is a broken one.
func Compile(in *v1alpha1.Enforcement) (*Enforcement, field.ErrorList) {
	e := &Enforcement{name: in.GetName(), generation: in.GetGeneration(), spec: *in.Spec.DeepCopy()}
	spec := field.NewPath("spec")

	var errs field.ErrorList

	e.objects = compileSelector(in.Spec.Match.ObjectSelector, spec.Child("match", "objectSelector"), &errs)
	e.namespaces = compileSelector(in.Spec.Match.NamespaceSelector, spec.Child("match", "namespaceSelector"), &errs)

	for i, c := range in.Spec.MatchConditions {
		x, err := expression.Compile(c.Expression)
		if err != nil {
			errs = append(errs, field.Invalid(spec.Child("matchConditions").Index(i).Child("expression"), c.Expression, err.Error()))

			continue
		}

		e.conditions = append(e.conditions, x)
		e.now = e.now || policy.ReadsNow(c.Expression)
	}

	for i, x := range in.Spec.Exceptions {
		e.excepted = append(e.excepted, policy.CompilePatterns(x.Mutations, spec.Child("exceptions").Index(i).Child("mutations"), &errs))
	}

	for _, err := range errs {
		e.broken = append(e.broken, err.Field)
	}

	return e, errs
}

// Governs reports whether the Enforcement is about a target, an object as it is or as it
// is asked for. A condition that cannot be evaluated counts as met where the failure policy is
// Fail, and as not met where it is Ignore; the error is returned beside. It is
// then no reason to except anything.
func (e *Enforcement) Governs(t Target, in expression.Input) (bool, error) {
	if !e.fails() || !e.CoversTarget(t) || !e.selects(in) {
		return false, nil
	}

	if in.Object == nil {
		in.Object = in.OldObject // Conditions are about what is there, also when it is deleted.
	}

	met, err := e.meets(in)
	if met || in.OldObject == nil {
		return met, err
	}

	in.Object = in.OldObject // A write does not free itself.
	was, wasErr := e.meets(in)

	return was, cmp.Or(err, wasErr)
}

// meets reports whether the conditions are met by the object of an input.
func (e *Enforcement) meets(in expression.Input) (bool, error) {
	budget := expression.NewBudget()

	for _, c := range e.conditions {
		ok, err := budget.Eval(c, in)
		if err != nil {
			return e.spec.FailurePolicy != v1alpha1.FailurePolicyIgnore, err
		}

		if !ok {
			return false, nil
		}
	}

	return true, nil
}

// Unsure reports whether the Enforcement may or may not be about an object, for it
// selects by labels of a namespace that are not known. What an Enforcement
// excepts it excepts of what it surely governs, and what one may forbid no other
// one excepts.
func (e *Enforcement) Unsure(t Target, in expression.Input) bool {
	return e.CoversTarget(t) && policy.NamespaceUnknown(in, e.namespaces) && policy.Selects(in, e.objects, labels.Everything())
}

// MaySelect reports whether the Enforcement may be about an object of a namespace,
// whatever its labels and those of a namespace that is not known.
func (e *Enforcement) MaySelect(in expression.Input) bool {
	return policy.NamespaceUnknown(in, e.namespaces) || policy.Selects(in, labels.Everything(), e.namespaces)
}

// selects reports whether the selectors are about an object as it is or as it is
// asked for: a write that takes a label away does not free itself.
func (e *Enforcement) selects(in expression.Input) bool {
	if policy.Selects(in, e.objects, e.namespaces) {
		return true
	}

	was := expression.Input{OldObject: in.OldObject, NamespaceObject: in.NamespaceObject}

	return in.OldObject != nil && policy.Selects(was, e.objects, e.namespaces)
}

// Beyond reports whether no Enforcement covers a resource: with these a cluster
// could be locked out for good, for without nodes nothing of ours can run
// either, or they are no state that anybody asks for.
func Beyond(gr schema.GroupResource) bool {
	switch gr.Group {
	case v1alpha1.GroupVersion().Group, "admissionregistration.k8s.io", "certificates.k8s.io", "events.k8s.io":
		return true
	case "coordination.k8s.io":
		return gr.Resource == "leases"
	case "storage.k8s.io":
		return gr.Resource == "csinodes" || gr.Resource == "volumeattachments"
	case "":
		return gr.Resource == "events" || gr.Resource == "nodes"
	default:
		return false
	}
}

// ReadsNow reports whether a condition may read the time of a decision.
func (e *Enforcement) ReadsNow() bool { return e.now }

// ReadsParent reports whether a condition reads the parent of an object.
func (e *Enforcement) ReadsParent() bool {
	return slices.ContainsFunc(e.conditions, (*expression.Expression).ReadsParent)
}

// Action is the strictest of the Enforcement's actions.
func (e *Enforcement) Action() v1alpha1.ValidationAction {
	return slices.MaxFunc(append([]v1alpha1.ValidationAction{""}, e.spec.ValidationActions...),
		func(a, b v1alpha1.ValidationAction) int { return Strictness(a) - Strictness(b) })
}

// Strictness orders actions: none, Audit, Warn, Hold, Deny.
func Strictness(a v1alpha1.ValidationAction) int {
	return slices.Index([]v1alpha1.ValidationAction{
		"", v1alpha1.ActionAudit, v1alpha1.ActionWarn, v1alpha1.ActionHold, v1alpha1.ActionDeny,
	}, a)
}

// IgnoresUnnamed reports whether the Enforcement lets changes of fields be that no
// policy names. A broken one ignores nothing.
func (e *Enforcement) IgnoresUnnamed() bool {
	return e.spec.UnnamedFields == v1alpha1.UnnamedFieldsIgnore && len(e.broken) == 0
}

// Exception returns the first exception that lets a user make a change now, nil
// if there is none. It ends the moment it is said to. A broken Enforcement
// excepts nobody.
func (e *Enforcement) Exception(u policy.User, c change.Change, now time.Time) *v1alpha1.Exception {
	if len(e.broken) > 0 {
		return nil
	}

	for i := range e.spec.Exceptions {
		x := &e.spec.Exceptions[i]

		if now.Before(x.Until.Time) &&
			slices.ContainsFunc(x.Subjects, u.Is) &&
			slices.ContainsFunc(e.excepted[i], func(p change.Pattern) bool { return p.CoversChange(c) }) {
			return x
		}
	}

	return nil
}
