// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// A gate opens for exactly what was allowed, and closes when that is in the
// external system.
func Example() {
	opts := gate.Options{LateInitialize: true, Settle: time.Minute}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	db := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Database",
		"metadata": map[string]any{"name": "db", "generation": int64(5), "annotations": map[string]any{
			v1alpha1.AnnotationGate:       "{v: 1, state: Closed, generation: 3, since: 2026-01-01T00:00:00Z, consumed: 1}",
			v1alpha1.AnnotationAllowances: "[{relation: External, mutations: [Update], generation: 5, initiator: hans, id: '5.0', source: {type: Policy}}]",
			v1alpha1.AnnotationTrace:      "[{field: spec.forProvider.size, generation: 5, initiator: hans}]",
		}},
		"spec": map[string]any{
			"managementPolicies": []any{"Observe", "LateInitialize"},
			"forProvider":        map[string]any{"size": "large"},
		},
	}}

	plan := func() {
		p, err := gate.PlanFor(db, opts, now)
		fmt.Fprintln(os.Stdout, p.Move, p.Policies, p.Why, err)

		if p.Move != gate.Stay {
			apply(db, p)
		}
	}

	plan() // hans has changed the size.
	report(db, 5, "small")
	plan() // The provider has not observed it since.
	report(db, 6, "small")
	plan() // It has, and is still at it.
	report(db, 6, "large")
	plan() // Done.
	plan()

	// Output:
	// Open [Observe LateInitialize Update] allowed by hans <nil>
	// Stay [Observe LateInitialize Update] waiting for the provider to sync generation 6 (it synced 5) <nil>
	// Stay [Observe LateInitialize Update] waiting for the external object to show the new value of spec.forProvider.size <nil>
	// Close [Observe] applied <nil>
	// Stay [Observe] closed <nil>
}

// apply writes a plan as the gate controller does.
func apply(u *unstructured.Unstructured, p gate.Plan) {
	record, err := allowance.FormatGate(p.Record)
	if err != nil {
		panic(err)
	}

	annotations := u.GetAnnotations()
	annotations[v1alpha1.AnnotationGate] = record

	if annotations[v1alpha1.AnnotationAllowances] != "" {
		annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(p.Allowances)
	}

	u.SetAnnotations(annotations)
	u.SetGeneration(p.Record.Generation)
	setPolicies(u, p.Policies...)
}

func setPolicies(u *unstructured.Unstructured, set ...string) {
	list := make([]any, len(set))
	for i, a := range set {
		list[i] = a
	}

	if err := unstructured.SetNestedSlice(u.Object, list, "spec", "managementPolicies"); err != nil {
		panic(err)
	}
}

// report is what a provider says after a look at the resource.
func report(u *unstructured.Unstructured, generation int64, size string) {
	u.Object["status"] = map[string]any{
		"atProvider": map[string]any{"size": size},
		"conditions": []any{map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation}},
	}
}
