// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// parameters is what a policy, or a binding for it, says of its parameters.
type parameters struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string
	selector  labels.Selector
}

// paramEnv is the environment of policies with parameters.
//
//nolint:gochecknoglobals // A constant that is costly to make.
var paramEnv = sync.OnceValues(func() (*cel.Env, error) {
	env, err := expression.PolicyEnv()
	if err != nil {
		return nil, err
	}

	env, err = env.Extend(cel.Variable(expression.VarParams, cel.DynType))
	if err != nil {
		return nil, fmt.Errorf("cannot make the CEL environment of parameters: %w", err)
	}

	return env, nil
})

// env is the environment of a policy's expressions.
func (p *Policy) env() func() (*cel.Env, error) {
	if p.spec.ParamKind == nil {
		return expression.PolicyEnv
	}

	return paramEnv
}

// compileParams compiles what a policy says of its parameters; nil where it has none.
func compileParams(spec *v1alpha1.AllowancePolicySpec, errs *field.ErrorList) *parameters {
	at := field.NewPath("spec")

	switch {
	case spec.ParamKind == nil && spec.ParamRef == nil:
		return nil
	case spec.ParamKind == nil:
		*errs = append(*errs, field.Required(at.Child("paramKind"), "paramRef says which objects of it hold the parameters"))

		return nil
	case spec.ParamRef == nil:
		*errs = append(*errs, field.Required(at.Child("paramRef"), "it says which objects of paramKind hold the parameters"))

		return nil
	}

	kind := paramKind(spec.ParamKind, at.Child("paramKind"), errs)
	ref := spec.ParamRef

	return compileParamRef(kind, ref.Namespace, ref.Name, ref.Selector, at.Child("paramRef"), errs)
}

// paramKind compiles a kind of parameters.
func paramKind(in *v1alpha1.ParamKind, at *field.Path, errs *field.ErrorList) schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(in.APIVersion)
	if err != nil || gv.Version == "" {
		*errs = append(*errs, field.Invalid(at.Child("apiVersion"), in.APIVersion, "it is not GROUP/VERSION, or VERSION for the core group"))
	}

	out := gv.WithKind(in.Kind)
	if out.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		*errs = append(*errs, field.Forbidden(at, "a Secret holds no parameters: what expressions make of it is told in refusals"))
	}

	return out
}

// compileParamRef compiles a reference to parameters of a kind.
func compileParamRef(
	kind schema.GroupVersionKind, namespace, name string, selector *metav1.LabelSelector, at *field.Path, errs *field.ErrorList,
) *parameters {
	out := &parameters{kind: kind, namespace: namespace, name: name}

	if (name == "") == (selector == nil) {
		*errs = append(*errs, field.Required(at, "one of name and selector is required, and not both"))
	}

	if selector != nil {
		out.selector = CompileSelector(selector, at.Child("selector"), errs)
	}

	return out
}

// of is the same of another kind.
func (p *parameters) of(kind schema.GroupVersionKind) *parameters {
	out := *p
	out.kind = kind

	return &out
}

// query is what to ask for of an object that belongs to a namespace; empty for none.
func (p *parameters) query(home string) expression.ParamQuery {
	namespace := p.namespace
	if namespace == "" {
		namespace = home
	}

	return expression.ParamQuery{Kind: p.kind, Namespace: namespace, Name: p.name, Selector: p.selector}
}

// evaluateWith checks conditions with each parameter that is found: all of them must hold
// with all of them. Where there is none nothing is met. What all of them cost together is
// limited as one policy's expressions are.
func (p *parameters) evaluateWith(
	s *expression.Scope, conditions []*condition, in expression.Input, below bool, budget *expression.Budget,
) Evaluation {
	if p == nil {
		return evaluate(s, conditions, in, below, budget)
	}

	q := p.query(in.Home)

	list, err := paramsOf(in, q)
	if err == nil {
		err = unusable(q, list.Objects)
	}

	q = q.Within(list)

	if err != nil {
		return unread(q, err)
	}

	if len(list.Objects) == 0 {
		return Evaluation{Kind: LackParameter, Missing: fmt.Sprintf("there is no %s, named by its paramRef", q)}
	}

	for _, object := range list.Objects {
		in.Param = object

		if v := evaluate(s, conditions, in, below, budget); !v.Met {
			v.Missing += fmt.Sprintf(" (with %s)", expression.ParamName(p.kind.Kind,
				resource.String(object, "metadata", "namespace"), resource.String(object, "metadata", "name")))

			return v
		}
	}

	return Evaluation{Met: true, Cost: budget.Spent()}
}

// paramsOf finds parameters by what an expression is evaluated with.
func paramsOf(in expression.Input, q expression.ParamQuery) (expression.ParamList, error) {
	if in.Params == nil {
		return expression.ParamList{}, errNoParams
	}

	return in.Params(q)
}

// Overridable reports whether bindings of a policy may have parameters of their own.
func Overridable(spec *v1alpha1.AllowancePolicySpec) bool {
	return spec.ParamRef != nil && spec.ParamRef.Overridable
}

// ParamKind is the kind of the policy's parameters; false where it has none.
func (p *Policy) ParamKind() (schema.GroupVersionKind, bool) { return ParamKindOf(&p.spec) }

// ParamKindOf is the kind of a policy's parameters; false where it has none.
func ParamKindOf(spec *v1alpha1.AllowancePolicySpec) (schema.GroupVersionKind, bool) {
	if spec.ParamKind == nil {
		return schema.GroupVersionKind{}, false
	}

	return schema.FromAPIVersionAndKind(spec.ParamKind.APIVersion, spec.ParamKind.Kind), true
}

// ParametersReadable reports whether a policy says that the parameters can be read that it
// has now; what it says of a generation before may be about another kind.
func ParametersReadable(p *v1alpha1.AllowancePolicy) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionParametersReadable)

	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.GetGeneration()
}
