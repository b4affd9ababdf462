// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Binding is a compiled AllowanceBinding.
type Binding struct {
	namespace, name string
	spec            v1alpha1.AllowanceBindingSpec
	subjects        []v1alpha1.Subject
	scope           *scope
	conditions      []*condition
	// params are those of the binding, of the policy's kind; nil for none.
	params *parameters
}

// CompileBinding compiles a binding. The errors carry the path of each field that is
// wrong, as field.Error.
func CompileBinding(in *v1alpha1.AllowanceBinding) (*Binding, field.ErrorList) {
	b := &Binding{namespace: in.GetNamespace(), name: in.GetName(), spec: *in.Spec.DeepCopy()}
	at := field.NewPath("spec")

	for _, s := range b.spec.Subjects {
		b.subjects = append(b.subjects, v1alpha1.Subject{
			Kind: v1alpha1.SubjectKind(s.Kind), Name: s.Name, Namespace: s.Namespace, MayInitiate: true,
		})
	}

	var errs field.ErrorList

	b.scope = compileScope(compileEnv, nil, at, &errs)
	b.conditions = b.scope.conditions(b.match(), at, &errs)

	if ref := b.spec.ParamRef; ref != nil {
		b.params = compileParamRef(schema.GroupVersionKind{}, b.namespace, ref.Name, ref.Selector, at.Child("paramRef"), &errs)
	}

	return b, errs
}

// match has the binding's conditions in the place of a policy's.
func (b *Binding) match() *v1alpha1.Match {
	out := &v1alpha1.Match{}
	for _, c := range b.spec.MatchConditions {
		out.MatchConditions = append(out.MatchConditions, v1alpha1.PolicyCondition{MatchCondition: c.MatchCondition, Message: c.Message})
	}

	return out
}

// Name of the binding, as NAMESPACE/NAME.
func (b *Binding) Name() string { return b.namespace + "/" + b.name }

// Spec the binding was compiled from; not to be modified.
func (b *Binding) Spec() *v1alpha1.AllowanceBindingSpec { return &b.spec }

// Subjects of the binding, each of whom may initiate; not to be modified.
func (b *Binding) Subjects() []v1alpha1.Subject { return b.subjects }

// Evaluate checks the binding's conditions, and with its parameters those of the policy
// that it binds, which is given.
func (b *Binding) Evaluate(p *Policy, in Input) Evaluation {
	v := evaluate(b.scope, b.conditions, in, false, NewBudget())
	if !v.Met || b.params == nil {
		return v
	}

	kind, ok := p.ParamKind()
	if !ok || !Overridable(&p.spec) {
		return Evaluation{Kind: LackParameter, Missing: "it has a paramRef, and that of the policy is not overridable"}
	}

	return b.params.of(kind).evaluateWith(p.scope, p.conditions, in, false)
}

// TypeCheck checks the binding's conditions against the schema of a kind that its policy
// is about, as [Policy.TypeCheck] does.
func (b *Binding) TypeCheck(kind *spec.Schema) []v1alpha1.TypeCheckingWarning {
	expressions := make([]*Expression, len(b.conditions))
	for i, c := range b.conditions {
		expressions[i] = c.expression
	}

	return CheckExpressions(kind, expressions, func(i int) *field.Path {
		return field.NewPath("spec", "matchConditions").Index(i).Child("expression")
	})
}

// CheckSubjects warns of subjects for which never is true: those who initiate nothing by
// a binding.
func (b *Binding) CheckSubjects(never func(v1alpha1.Subject) bool) []v1alpha1.TypeCheckingWarning {
	var out []v1alpha1.TypeCheckingWarning

	for i, s := range b.subjects {
		if never(s) {
			out = append(out, v1alpha1.TypeCheckingWarning{
				Field:   field.NewPath("spec", "subjects").Index(i).String(),
				Warning: "Crossplane, its providers and Kausality initiate nothing by a binding",
			})
		}
	}

	return out
}

// Bindings are compiled AllowanceBindings, by policy and namespace. They are never
// modified, and safe for concurrent use. Nil is empty.
type Bindings struct {
	of map[boundIn][]*Binding
	// parent is true where any of them reads the parent of an object.
	parent bool
}

type boundIn struct{ policy, namespace string }

// NewBindings makes Bindings. They come out of it ordered by name.
func NewBindings(list ...*Binding) *Bindings {
	out := &Bindings{of: make(map[boundIn][]*Binding, len(list))}

	for _, b := range list {
		key := boundIn{policy: b.spec.Policy, namespace: b.namespace}
		out.of[key] = append(out.of[key], b)
		out.parent = out.parent || slices.ContainsFunc(b.conditions, func(c *condition) bool { return c.parent })
	}

	for _, some := range out.of {
		slices.SortFunc(some, func(a, b *Binding) int { return strings.Compare(a.name, b.name) })
	}

	return out
}

// Of are those of a policy in a namespace; not to be modified. In none there are none.
func (b *Bindings) Of(policy, namespace string) []*Binding {
	if b == nil || namespace == "" {
		return nil
	}

	return b.of[boundIn{policy: policy, namespace: namespace}]
}

// All are all of them, ordered by namespace and name.
func (b *Bindings) All() []*Binding {
	if b == nil {
		return nil
	}

	return slices.SortedFunc(func(yield func(*Binding) bool) {
		for _, some := range b.of {
			for _, one := range some {
				if !yield(one) {
					return
				}
			}
		}
	}, func(a, b *Binding) int { return strings.Compare(a.Name(), b.Name()) })
}

// MayReadParent reports whether a binding may read the parent of an object of a kind.
func (b *Bindings) MayReadParent(in *Set, gk schema.GroupKind) bool {
	if b == nil || !b.parent || in == nil {
		return false
	}

	return slices.ContainsFunc(in.For(gk), (*Policy).Bindable) || slices.ContainsFunc(in.shadow.For(gk), (*Policy).Bindable)
}
