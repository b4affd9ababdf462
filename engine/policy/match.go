// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Names reports whether the policy is about a change: its fields cover it, and not all of it is
// excluded.
func (p *Policy) Names(c change.Change) bool {
	return coversAny(p.fields, c) && !coversAny(p.excluded, c)
}

// Touches reports whether the policy is about a change, or about what a value that takes the place of
// a map or a list, or is replaced by one, takes away or brings along with that.
func (p *Policy) Touches(c change.Change) bool {
	return p.Names(c) || slices.ContainsFunc(p.fields, func(f change.Pattern) bool {
		return slices.ContainsFunc(f.Inside(c), func(path change.Path) bool {
			return !slices.ContainsFunc(p.excluded, func(e change.Pattern) bool { return e.Covers(path) })
		})
	})
}

// Covers reports whether the policy is about all of a change, so that it can allow it.
func (p *Policy) Covers(c change.Change) bool { return p.Names(c) && len(p.Excluded(c)) == 0 }

// Excluded are the excluded fields that a change is about besides others.
func (p *Policy) Excluded(c change.Change) []string {
	var out []string

	for _, e := range p.excluded {
		if touches(e, c.Path) || c.Was != nil && touches(e, c.Was) {
			out = append(out, e.String())
		}
	}

	return out
}

func touches(e change.Pattern, path change.Path) bool { return e.Covers(path) || e.Within(path) }

func coversAny(patterns []change.Pattern, c change.Change) bool {
	return slices.ContainsFunc(patterns, func(p change.Pattern) bool { return p.CoversChange(c) })
}

// LackKind is what prevents a policy from allowing a change.
type LackKind string

// Kinds of lacks.
const (
	// LackSubject is a user the policy does not list.
	LackSubject LackKind = "Subject"
	// LackCEL is an expression that is false, or cannot be evaluated.
	LackCEL LackKind = "CEL"
	// LackSelector is an object or namespace without the labels.
	LackSelector LackKind = "Selector"
	// LackField is a field that the policy's mutations do not cover.
	LackField LackKind = "Field"
	// LackCause is a change of the parent that would give the allowance.
	LackCause LackKind = "Cause"
	// LackEarlier is an allowance that was given after what is asked for was held.
	LackEarlier LackKind = "Earlier"
	// LackConsumed is an allowance that has served.
	LackConsumed LackKind = "Consumed"
	// LackPolicy is a policy that is not there, or no longer.
	LackPolicy LackKind = "Policy"
	// LackEdited is a parent that somebody changed who might not.
	LackEdited LackKind = "Edited"
	// LackWindow is an UpgradeAllowance that is not in force.
	LackWindow LackKind = "Window"
	// LackParent is a parent that is gone.
	LackParent LackKind = "Parent"
	// LackInitiator is anybody who may initiate a change of the field.
	LackInitiator LackKind = "Initiator"
	// LackApproval is the approval of other people, without which a policy lets those initiate
	// nothing who may by it.
	LackApproval LackKind = "Approval"
	// LackParameter is an object that holds the policy's parameters, which is not there or
	// cannot be read.
	LackParameter LackKind = "Parameter"
	// LackEnforcement is an Enforcement that cannot be evaluated.
	LackEnforcement LackKind = "Enforcement"
)

// Evaluation is whether an object and a request meet a policy's selectors and
// expressions.
type Evaluation struct {
	// Met is true when all of them hold.
	Met bool
	// Missing says what does not hold, for a person; empty when Met.
	Missing string
	// Short is Missing in fewer words; empty where there are none.
	Short string
	// Kind is what kind of thing that is; empty when Met.
	Kind LackKind
	// Condition of the policy that does not hold, by its name; empty for one of cel, for one
	// of a binding, and for all else.
	Condition string
	// Problem is an expression that could not be evaluated; it counts as not
	// met.
	Problem error
	// Cost of all expressions that were evaluated, in CEL's units; of one that could not
	// be evaluated to an end, up to where it was.
	Cost uint64
}

// Evaluate checks the policy's selectors and expressions where a chain starts.
func (p *Policy) Evaluate(in expression.Input) Evaluation { return p.evaluate(in, false) }

// EvaluateBelow checks them where a change above led to this one: expressions about who
// asked for that, how and when count as met.
func (p *Policy) EvaluateBelow(in expression.Input) Evaluation { return p.evaluate(in, true) }

func (p *Policy) evaluate(in expression.Input, below bool) Evaluation {
	if !p.selectsBoth(in) {
		return Evaluation{Kind: LackSelector, Missing: fmt.Sprintf("the object does not match objectSelector %q", p.objects)}
	}

	if NamespaceUnknown(in, p.namespaces) {
		return Evaluation{Kind: LackSelector, Missing: fmt.Sprintf(
			"namespaceSelector %q needs labels of the namespace, which are not known", p.namespaces)}
	}

	if !Selects(in, labels.Everything(), p.namespaces) {
		return Evaluation{Kind: LackSelector, Missing: fmt.Sprintf("the namespace does not match namespaceSelector %q", p.namespaces)}
	}

	return p.params.evaluateWith(p.scope, p.conditions, in, below, expression.NewBudget())
}

// evaluate checks conditions, within a budget.
func evaluate(s *expression.Scope, conditions []*condition, in expression.Input, below bool, budget *expression.Budget) Evaluation {
	if len(conditions) == 0 {
		return Evaluation{Met: true}
	}

	given := s.Activate(&in, budget)
	out := Evaluation{Met: true}

	for _, c := range conditions {
		if below && c.expression.Reads().OfStart || c.shadow {
			continue
		}

		ok, err := budget.EvalIn(c.expression, given)
		if err != nil {
			out = Evaluation{Kind: LackCEL, Missing: c.failed(err), Condition: c.name, Problem: err}

			break
		}

		if !ok {
			out = Evaluation{Kind: LackCEL, Missing: c.missing(given, budget), Condition: c.name}

			break
		}
	}

	out.Cost = budget.Spent()

	return out
}

// Selects reports whether an object and its namespace meet the policy's selectors,
// whatever its expressions say.
func (p *Policy) Selects(in expression.Input) bool { return Selects(in, p.objects, p.namespaces) }

// Selects reports whether the object of an input and its namespace carry the
// labels that are selected. No namespace selector limits what is cluster-scoped.
func Selects(in expression.Input, objects, namespaces labels.Selector) bool {
	obj := in.Subject()

	if !objects.Empty() && !objects.Matches(labelsOf(obj)) {
		return false
	}

	if isNamespace(obj) { // As for the API server, by its labels.
		return namespaces.Empty() || namespaces.Matches(labelsOf(obj))
	}

	namespaced := in.NamespaceObject != nil || resource.String(obj, "metadata", "namespace") != ""

	return !namespaced || namespaces.Empty() || namespaces.Matches(labelsOf(in.NamespaceObject))
}

// NamespaceUnknown reports whether a selector asks for labels of a namespace that
// are not known: that they are missing would be a guess, and nothing is granted
// by one.
func NamespaceUnknown(in expression.Input, namespaces labels.Selector) bool {
	obj := in.Subject()

	return !namespaces.Empty() && in.NamespaceObject == nil && !isNamespace(obj) && resource.String(obj, "metadata", "namespace") != ""
}

func isNamespace(obj map[string]any) bool {
	return obj["kind"] == "Namespace" && obj["apiVersion"] == "v1"
}

// reason is what an error says beyond which expression it is about, which who
// reports it names himself.
func reason(err error) error {
	if why := errors.Unwrap(err); why != nil {
		return why
	}

	return err
}

func labelsOf(obj map[string]any) labels.Set {
	out := labels.Set{}

	for k, v := range resource.Map(obj, "metadata", "labels") {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}

	return out
}

// maxAttestation limits the bytes of one captured value that are stored.
const maxAttestation = 256

// Attestations returns the values of the policy's capture fields by their
// concrete paths, nil when there are none. Values that are no strings are
// written as JSON; long ones are cut, and credentials are masked.
func (p *Policy) Attestations(obj map[string]any) map[string]string {
	var out map[string]string

	store := func(path string, segments change.Path, v any) {
		if out == nil {
			out = map[string]string{}
		}

		out[path] = change.Text(mask.Value(segments, v, obj), maxAttestation)
	}

	for _, c := range p.capture {
		if !c.Wildcard() {
			if v, ok := valueAt(obj, c.Segments()); ok {
				store(c.String(), c.Segments(), v)
			}

			continue
		}

		paths, ok := c.Expand(obj)
		if !ok {
			continue // The object is of another shape: nothing to capture.
		}

		for _, path := range paths {
			text := path.String()

			// A key may be one that no path can name.
			named, err := fieldpath.Parse(text)
			if err != nil {
				continue
			}

			if v, ok := named.In(obj); ok {
				store(text, named, v)
			}
		}
	}

	return out
}

// valueAt returns what is at a path of an object, and whether it is there. What stands
// in brackets may also be a key of digits.
func valueAt(obj map[string]any, path change.Path) (any, bool) {
	var at any = obj

	for _, s := range path {
		switch t := at.(type) {
		case map[string]any:
			v, ok := t[s.Key()]
			if !ok {
				return nil, false
			}

			at = v
		case []any:
			if s.Type != fieldpath.SegmentIndex || s.Index >= uint(len(t)) {
				return nil, false
			}

			at = t[s.Index]
		default:
			return nil, false
		}
	}

	return at, true
}

// MergeAttestations adds captured values to others; the first of a path stays.
func MergeAttestations(have, add map[string]string) map[string]string {
	if have == nil {
		return maps.Clone(add)
	}

	for k, v := range add {
		if _, ok := have[k]; !ok {
			have[k] = v
		}
	}

	return have
}
