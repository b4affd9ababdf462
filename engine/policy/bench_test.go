// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// ticket is an expression as people write it.
const ticket = "object.metadata.labels['env'] != 'prod' || object.spec.jiraTicket.matches('^INFRA-[0-9]+$')"

// BenchmarkCEL measures a policy with one expression beside a bare cel-go
// evaluation of the same, which has none of Kubernetes' limits.
func BenchmarkCEL(b *testing.B) {
	obj := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"env": "prod"}},
		"spec":     map[string]any{"jiraTicket": "INFRA-23232"},
	}

	b.Run("by=kausality", func(b *testing.B) {
		b.ReportAllocs()

		p, errs := policy.Compile(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{Kind: "Database", Fields: []string{"spec"}, CEL: []string{ticket}},
		}})
		if len(errs) > 0 {
			b.Fatal(errs)
		}

		for b.Loop() {
			if v := p.Evaluate(expression.Input{Object: obj, OldObject: obj}); !v.Met {
				b.Fatal(v)
			}
		}
	})
	b.Run("by=cel-go", func(b *testing.B) {
		b.ReportAllocs()

		env, err := cel.NewEnv(cel.Variable("object", cel.DynType))
		if err != nil {
			b.Fatal(err)
		}

		tree, iss := env.Compile(ticket)
		if iss.Err() != nil {
			b.Fatal(iss.Err())
		}

		prg, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			b.Fatal(err)
		}

		for b.Loop() {
			if v, _, err := prg.Eval(map[string]any{"object": obj}); err != nil || v.Value() != true {
				b.Fatal(v, err)
			}
		}
	})
}

// BenchmarkCompile measures loading 10,000 policies, every fifth of which has
// a separate expression, and what they take in memory.
func BenchmarkCompile(b *testing.B) {
	const n = 10_000

	list := make([]v1alpha1.AllowancePolicy, n)

	for i := range list {
		list[i].SetName(fmt.Sprintf("policy-%d", i))
		list[i].Spec = v1alpha1.AllowancePolicySpec{
			Match: v1alpha1.Match{
				APIGroup: fmt.Sprintf("g%d.example.com", i%10), Kind: fmt.Sprintf("Kind%d", i%500),
				Fields:  []string{"spec.size", "spec.template.spec.containers[*].image"},
				Capture: []string{"metadata.annotations[jira]"},
			},
			Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "platform-team", MayInitiate: true}},
			Allow: []v1alpha1.Permission{
				{Kind: "Child", Mutations: []string{"spec.size", "spec.template"}},
				{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}},
			},
		}

		if i%5 == 0 {
			list[i].Spec.Match.CEL = []string{fmt.Sprintf("%s || object.spec.size == '%d'", ticket, i)}
		}
	}

	b.Run("policies=10000/by=kausality", func(b *testing.B) {
		b.ReportAllocs()

		var (
			set           *policy.Set
			before, after runtime.MemStats
		)

		runtime.GC()
		runtime.ReadMemStats(&before)

		for b.Loop() {
			var bad []error
			if set, bad = policy.NewCache().Set(list); len(bad) > 0 || set.Len() != n {
				b.Fatal(bad)
			}
		}

		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "retained-MB")
		runtime.KeepAlive(set)
	})
}
