// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// BenchmarkDecideRatio judges a deletion that follows from another under 10,000 policies of
// which one gives it, and under that one alone, in turns: of-one-x is how many times as long
// it takes.
func BenchmarkDecideRatio(b *testing.B) {
	const turn = 5

	one, many := deletionsUnder(b, 1), deletionsUnder(b, 10_000)
	child, parent := fixture.Parse(b, endingMR), fixture.Parse(b, endingXR)

	// What is in force is compiled once.
	for _, d := range []*judging.Judge{one, many} {
		if _, err := judge(b.Context(), d, child, parent); err != nil {
			b.Fatal(err)
		}
	}

	var took [2]time.Duration

	for b.Loop() {
		for i, d := range []*judging.Judge{one, many} {
			start := time.Now()

			for range turn {
				got, err := judge(b.Context(), d, child, parent)
				if err != nil || got.Object == nil {
					b.Fatalf("nothing is given: %+v, %v", got, err)
				}
			}

			took[i] += time.Since(start)
		}
	}

	b.ReportMetric(float64(took[1])/float64(took[0]), "of-one-x")
}

// deletionsUnder judges under n policies.
func deletionsUnder(b *testing.B, n int) *judging.Judge {
	b.Helper()

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}

	objects := make([]client.Object, 0, 1+n)
	objects = append(objects, fixture.Parse(b, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))

	for i := range n {
		kind := "XDatabase"
		if i > 0 {
			kind = fmt.Sprintf("Kind%d", i%500)
		}

		p := &v1alpha1.AllowancePolicy{}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, `{metadata: {name: deletes-%d}, spec: {match: {kind: %s, fields: [delete]},
			allow: [{kind: Instance, mutations: [delete]}, {relation: External, mutations: [Delete]}]}}`, i, kind), p); err != nil {
			b.Fatal(err)
		}

		if i == 0 {
			p.Name = "deletes"
		}

		objects = append(objects, p)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.FromAPIVersionAndKind("rds.example.org/v1", "Instance"), meta.RESTScopeNamespace)

	return &judging.Judge{Inputs: current.Of(c), Live: c, Mapper: mapper, Now: func() time.Time { return time.Unix(0, 0) }}
}
