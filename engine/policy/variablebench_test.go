// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// named is an expression as the API server's compiler takes it.
type named struct {
	name, text string
	kind       *celgo.Type
}

func (n named) GetName() string            { return n.name }
func (n named) GetExpression() string      { return n.text }
func (n named) ReturnTypes() []*celgo.Type { return []*celgo.Type{n.kind} }

// BenchmarkVariables measures three conditions that use two variables beside the API
// server's environment for those of a ValidatingAdmissionPolicy.
func BenchmarkVariables(b *testing.B) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Database",
		"metadata": map[string]any{
			"name": "orders", "namespace": "shop", "labels": map[string]any{"env": "prod"},
			"annotations": map[string]any{"jira": "INFRA-23232"},
		},
		"spec": map[string]any{"storageGB": int64(20), "zones": []any{"a", "b", "c"}},
	}}
	variables := []named{
		{"ticket", "object.metadata.annotations['jira']", celgo.AnyType},
		{"zones", "object.spec.zones.filter(z, z != 'c')", celgo.AnyType},
	}
	conditions := []named{
		{"ticket", "variables.ticket.startsWith('INFRA-') && variables.ticket.matches('^INFRA-[0-9]+$')", celgo.BoolType},
		{"zones", "variables.zones.size() == 2 && variables.zones.all(z, z in ['a', 'b'])", celgo.BoolType},
		{"grows", "object.spec.storageGB >= oldObject.spec.storageGB && variables.ticket != ''", celgo.BoolType},
	}

	b.Run("by=kausality", func(b *testing.B) {
		b.ReportAllocs()

		match := v1alpha1.Match{Kind: "Database", Fields: []string{"spec"}}
		for _, v := range variables {
			match.Variables = append(match.Variables, v1alpha1.Variable{Name: v.name, Expression: v.text})
		}

		for _, c := range conditions {
			match.MatchConditions = append(match.MatchConditions, v1alpha1.PolicyCondition{
				MatchCondition: v1alpha1.MatchCondition{Name: c.name, Expression: c.text},
			})
		}

		p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{Match: match}})
		if len(errs) > 0 {
			b.Fatal(errs)
		}

		for b.Loop() {
			if v := p.Evaluate(expression.Input{Object: object.Object, OldObject: object.Object}); !v.Met {
				b.Fatal(v)
			}
		}
	})
	b.Run("by=apiserver", func(b *testing.B) {
		b.ReportAllocs()

		compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		if err != nil {
			b.Fatal(err)
		}

		for _, v := range variables {
			if r := compiler.CompileAndStoreVariable(v, cel.OptionalVariableDeclarations{}, environment.NewExpressions); r.Error != nil {
				b.Fatal(r.Error)
			}
		}

		accessors := make([]cel.ExpressionAccessor, len(conditions))
		for i, c := range conditions {
			accessors[i] = c
		}

		condition := compiler.CompileCondition(accessors, cel.OptionalVariableDeclarations{}, environment.NewExpressions)
		if errs := condition.CompilationErrors(); len(errs) > 0 {
			b.Fatal(errs)
		}

		gvk := object.GroupVersionKind()
		attributes := &admission.VersionedAttributes{
			Attributes: admission.NewAttributesRecord(object, object, gvk, "shop", "orders",
				schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "databases"}, "", admission.Update, nil, false, nil),
			VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(object), VersionedKind: gvk,
		}
		request := &admissionv1.AdmissionRequest{Name: "orders", Namespace: "shop", Operation: admissionv1.Update}

		for b.Loop() {
			results, _, err := condition.ForInput(b.Context(), attributes, request, cel.OptionalVariableBindings{}, nil, apiservercel.RuntimeCELCostBudget)
			if err != nil {
				b.Fatal(err)
			}

			for _, r := range results {
				if r.Error != nil || r.EvalResult.Value() != true {
					b.Fatal(r)
				}
			}
		}
	})
}
