// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestTheRecordOfEditsIsBounded(t *testing.T) {
	var p v1alpha1.AllowancePolicy
	if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: widgets}, spec: {match: {kind: Widget, fields: [spec]},
		subjects: [{kind: Group, name: platform-team, mayInitiate: true}], allow: [{kind: ConfigMap, mutations: [data]}]}}`), &p); err != nil {
		t.Fatal(err)
	}

	set, bad := policy.NewCache().Set([]v1alpha1.AllowancePolicy{p})
	if len(bad) > 0 {
		t.Fatal(bad)
	}

	widget := func(value string) *unstructured.Unstructured {
		spec := map[string]any{}
		for i := range 200 {
			spec[fmt.Sprintf("f%03d", i)] = strings.Repeat(value, 1000)
		}

		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": spec,
		}}
	}

	ask := func(old, obj *unstructured.Unstructured) *unstructured.Unstructured {
		return decision.Decide(decision.Request{
			Operation: decision.OperationUpdate, Old: old, New: obj, Basis: decision.Basis{Policies: set, Now: time.Unix(0, 0)},
			User: policy.User{Name: strings.Repeat("u", 1000), Groups: make([]string, 100)},
		}).Object
	}

	edited := ask(widget("a"), widget("b"))

	list, err := allowance.ParseEdits(edited)
	if err != nil || len(list) != v1alpha1.MaxEdits {
		t.Fatalf("%d edits, want %d: %v", len(list), v1alpha1.MaxEdits, err)
	}

	if n := len(edited.GetAnnotations()[v1alpha1.AnnotationEdits]); n > 64<<10 {
		t.Errorf("the record takes %d bytes", n)
	}

	if list[len(list)-1].Field != "(more)" {
		t.Errorf("the last edit is %+v", list[len(list)-1])
	}
}
