// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// Policy is a compiled AllowancePolicy.
type Policy struct {
	name       string
	generation int64
	spec       v1alpha1.AllowancePolicySpec
	fields     []change.Pattern
	excluded   []change.Pattern
	capture    []change.Pattern
	params     *parameters
	scope      *expression.Scope
	conditions []*condition
	objects    labels.Selector
	namespaces labels.Selector
	gate       *Gate
	// now is true where an expression may read the time of the decision.
	now bool
}

// Name of the policy.
func (p *Policy) Name() string { return p.name }

// Generation of the policy; zero where its source names none.
func (p *Policy) Generation() int64 { return p.generation }

// of is the policy as of a generation: others may have had the same content.
func (p *Policy) of(generation int64) *Policy {
	if p.generation == generation {
		return p
	}

	out := *p
	out.generation = generation

	return &out
}

// Spec the policy was compiled from; not to be modified.
func (p *Policy) Spec() *v1alpha1.AllowancePolicySpec { return &p.spec }

// Compile compiles a policy. The errors carry the path of each field that is
// wrong, as field.Error.
func Compile(in *v1alpha1.AllowancePolicy) (*Policy, field.ErrorList) {
	p := &Policy{name: in.GetName(), generation: in.GetGeneration(), spec: *in.Spec.DeepCopy()}
	match := field.NewPath("spec", "match")

	var errs field.ErrorList

	p.fields = CompilePatterns(in.Spec.Match.Fields, match.Child("fields"), &errs)
	p.excluded = CompilePatterns(in.Spec.Match.ExcludeFields, match.Child("excludeFields"), &errs)
	errs = append(errs, p.checkExcluded(match.Child("excludeFields"))...)
	p.capture = CompilePatterns(in.Spec.Match.Capture, match.Child("capture"), &errs)
	p.objects = CompileSelector(in.Spec.Match.ObjectSelector, match.Child("objectSelector"), &errs)
	p.namespaces = CompileSelector(in.Spec.Match.NamespaceSelector, match.Child("namespaceSelector"), &errs)

	for i, text := range in.Spec.Match.Capture {
		if c, err := change.ParsePattern(text); err == nil && c.Pseudo() {
			errs = append(errs, field.Invalid(match.Child("capture").Index(i), text, "create and delete have no value to capture"))
		}
	}

	p.params = compileParams(&in.Spec, &errs)
	p.scope = expression.CompileScope(p.env(), in.Spec.Match.Variables, match.Child("variables"), &errs)
	p.conditions = conditionsIn(p.scope, &in.Spec.Match, match, &errs)
	p.now = slices.ContainsFunc(Expressions(&in.Spec.Match), func(w Written) bool { return ReadsNow(w.Text) })

	checkPermissions(in.Spec.Allow, field.NewPath("spec", "allow"), &errs)

	g, bad := CompileGate(in.Spec.Gate)
	p.gate = g

	return p, append(errs, bad...)
}

// checkExcluded reports what is excluded of nothing: it would be taken for excluded.
func (p *Policy) checkExcluded(at *field.Path) field.ErrorList {
	var errs field.ErrorList

	for i, e := range p.excluded {
		switch {
		case e.Pseudo():
			errs = append(errs, field.Invalid(at.Index(i), e.String(), "create and delete are named in fields, or not at all"))
		case !slices.ContainsFunc(p.fields, e.Overlaps):
			errs = append(errs, field.Invalid(at.Index(i), e.String(), "it is below none of fields"))
		case slices.ContainsFunc(p.fields, func(f change.Pattern) bool { return !f.Pseudo() && e.Covers(f.Segments()) }):
			errs = append(errs, field.Invalid(at.Index(i), e.String(), "nothing is left of a field that it is below"))
		}
	}

	return errs
}

// CompilePatterns compiles field paths and reports those that are none, at the
// given path.
func CompilePatterns(texts []string, at *field.Path, errs *field.ErrorList) []change.Pattern {
	out := make([]change.Pattern, 0, len(texts))

	for i, text := range texts {
		p, err := change.ParsePattern(text)
		if err != nil {
			*errs = append(*errs, field.Invalid(at.Index(i), text, err.Error()))

			continue
		}

		out = append(out, p)
	}

	return out
}

// CompileSelector compiles a label selector and reports it at the given path if
// it is wrong. No selector selects everything.
func CompileSelector(sel *metav1.LabelSelector, at *field.Path, errs *field.ErrorList) labels.Selector {
	if sel == nil {
		return labels.Everything()
	}

	s, err := metav1.LabelSelectorAsSelector(sel)
	if err != nil {
		*errs = append(*errs, field.Invalid(at, sel.String(), err.Error()))

		return labels.Nothing()
	}

	return s
}

// CheckPermissions reports permissions whose mutations are no field paths, at
// the given path. Verbs of external systems are free.
func CheckPermissions(allow []v1alpha1.Permission, at *field.Path) field.ErrorList {
	var errs field.ErrorList

	checkPermissions(allow, at, &errs)

	return errs
}

func checkPermissions(allow []v1alpha1.Permission, at *field.Path, errs *field.ErrorList) {
	for i, perm := range allow {
		if perm.Relation != v1alpha1.RelationExternal {
			CompilePatterns(perm.Mutations, at.Index(i).Child("mutations"), errs)
		}
	}
}
