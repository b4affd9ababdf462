// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// Binding is a compiled AllowanceBinding.
type Binding struct {
	namespace, name string
	spec            v1alpha1.AllowanceBindingSpec
	subjects        []v1alpha1.Subject
	scope           *expression.Scope
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

	b.scope = expression.CompileScope(expression.Env, nil, at, &errs)
	b.conditions = conditionsIn(b.scope, b.match(), at, &errs)

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

// Overrides reports whether the binding has parameters of its own though its policy, which
// is given, lets it have none: then it grants nothing.
func (b *Binding) Overrides(p *Policy) bool {
	_, ok := p.ParamKind()

	return b.params != nil && (!ok || !Overridable(&p.spec))
}

// Evaluate checks the binding's conditions, and with its parameters those of the policy
// that it binds, which is given. The budget is that of all bindings of a request.
func (b *Binding) Evaluate(p *Policy, in expression.Input, budget *expression.Budget) Evaluation {
	if b.Overrides(p) {
		return Evaluation{Kind: LackParameter, Missing: "it has a paramRef, and that of the policy is not overridable"}
	}

	if v := bear(budget, expression.CostOfBinding); v.Problem != nil {
		return v
	}

	v := evaluate(b.scope, b.conditions, in, false, budget)
	if v.Condition = ""; !v.Met || b.params == nil { // It would be the binding's.
		return v
	}

	if v := bear(budget, expression.CostOfParams); v.Problem != nil {
		return v
	}

	kind, _ := p.ParamKind()

	return b.params.of(kind).evaluateWith(p.scope, p.conditions, in, false, budget)
}

// bear takes what is done for a binding besides its expressions. It has a Problem where
// nothing is left for that.
func bear(b *expression.Budget, cost uint64) Evaluation {
	if err := b.Spend(cost); err != nil {
		return Evaluation{Kind: LackCEL, Missing: err.Error(), Problem: fmt.Errorf("cannot evaluate it: %w", err)}
	}

	return Evaluation{Met: true}
}

// Bindings are compiled AllowanceBindings, by policy and namespace. They are never
// modified, and safe for concurrent use. Nil is empty.
type Bindings struct {
	of map[boundIn][]*Binding
	// parent are the policies of which one reads the parent of an object.
	parent map[string]bool
}

type boundIn struct{ policy, namespace string }

// NewBindings makes Bindings. They come out of it ordered by name.
func NewBindings(list ...*Binding) *Bindings {
	out := &Bindings{of: make(map[boundIn][]*Binding, len(list)), parent: map[string]bool{}}

	for _, b := range list {
		key := boundIn{policy: b.spec.Policy, namespace: b.namespace}
		out.of[key] = append(out.of[key], b)

		if slices.ContainsFunc(b.conditions, func(c *condition) bool { return c.parent }) {
			out.parent[b.spec.Policy] = true
		}
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

// readParent reports whether a binding of a policy reads the parent of an object.
func (b *Bindings) readParent(p *Policy) bool { return b != nil && p.Bindable() && b.parent[p.name] }

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
