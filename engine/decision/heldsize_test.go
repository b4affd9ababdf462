// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestTheRecordOfWhatIsHeldKeepsToItsBudget holds many fields for a reason that
// quotes a long expression.
func TestTheRecordOfWhatIsHeldKeepsToItsBudget(t *testing.T) {
	const fields = 70

	p := &v1alpha1.AllowancePolicy{}
	p.Name = "sizes"
	p.Spec.Match.Kind = "Claim"
	p.Spec.Match.Fields = []string{"spec.size"}
	p.Spec.Match.CEL = []string{"object.spec.size in [" + strings.TrimSuffix(strings.Repeat("'some-allowed-instance-size', ", 150), ", ") + "]"}
	p.Spec.Allow = []v1alpha1.Permission{{Kind: "XR", Mutations: []string{"spec"}}}

	compiled, errs := policy.Compile(p)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	was, is := map[string]any{}, map[string]any{}
	for i := range fields {
		was[fmt.Sprintf("k%02d", i)], is[fmt.Sprintf("k%02d", i)] = "a", "b"
	}

	xr := func(parameters map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "XR", "metadata": map[string]any{"name": "x", "generation": int64(3)},
			"spec": map[string]any{
				"parameters": parameters,
				"claimRef":   map[string]any{"apiVersion": "example.org/v1", "kind": "Claim", "name": "c", "namespace": "n"},
			},
		}}
	}

	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Claim",
		"metadata": map[string]any{"name": "c", "namespace": "n", "annotations": map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`}},
		"spec":     map[string]any{"resourceRef": map[string]any{"apiVersion": "example.org/v1", "kind": "XR", "name": "x"}},
	}}

	d := decision.Decide(request.Request{
		Old: xr(was), New: xr(is), Parent: claim, Basis: request.Basis{Policies: policy.NewSet(compiled)},
		User: policy.User{Name: "system:serviceaccount:crossplane-system:crossplane"},
	})

	if got := len(resource.Annotation(d.Object, v1alpha1.AnnotationHeld)); got == 0 || got > v1alpha1.MaxHeldBytes {
		t.Errorf("%d bytes, want some and at most %d", got, v1alpha1.MaxHeldBytes)
	}

	list, err := allowance.ParseHeld(d.Object)
	if err != nil {
		t.Fatal(err)
	}

	if n, ok := allowance.MoreHeld(list[len(list)-1]); !ok || n+len(list)-1 != fields {
		t.Errorf("the last of %d entries is %v, want it to count up to %d", len(list), list[len(list)-1], fields)
	}

	if !strings.HasSuffix(list[0].Missing, "...") {
		t.Errorf("a reason is not cut: %s", list[0].Missing)
	}
}
