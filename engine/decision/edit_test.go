// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// TestEditsAreRecordedWhereAPolicySaysWhoMayMakeThem and where nothing leaves fields alone that no policy names.
func TestEditsAreRecordedWhereAPolicySaysWhoMayMakeThem(t *testing.T) {
	about := func(subject string) v1alpha1.AllowancePolicy {
		var p v1alpha1.AllowancePolicy
		if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: widgets}, spec: {match: {apiGroup: example.org, kind: Widget, fields: [spec.size]},
			subjects: [`+subject+`], allow: [{kind: ConfigMap, mutations: [data]}]}}`), &p); err != nil {
			t.Fatal(err)
		}

		return p
	}

	const hans, crossplane = "{kind: User, name: hans, mayInitiate: true}", "{kind: User, name: crossplane}"

	for name, tc := range map[string]struct {
		subject, resource string
		unnamed           v1alpha1.UnnamedFields
		bound, want       bool
	}{
		"Initiator":              {subject: hans, want: true},
		"NoInitiator":            {subject: crossplane},
		"OfAClaim":               {subject: crossplane, bound: true, want: true},
		"UnnamedFieldsIgnored":   {subject: hans, resource: "widgets", unnamed: v1alpha1.UnnamedFieldsIgnore},
		"UnnamedFieldsEnforced":  {subject: hans, resource: "widgets", want: true},
		"IgnoredOfAnotherObject": {subject: hans, resource: "gadgets", unnamed: v1alpha1.UnnamedFieldsIgnore, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			set, bad := policy.NewCache().Set([]v1alpha1.AllowancePolicy{about(tc.subject)})
			if len(bad) > 0 {
				t.Fatal(bad)
			}

			basis := request.Basis{Policies: set}

			if tc.resource != "" {
				in := v1alpha1.Enforcement{}
				in.Spec.Match.ResourceRules = []v1alpha1.ResourceRule{{APIGroups: []string{"example.org"}, Resources: []string{tc.resource}}}
				in.Spec.UnnamedFields = tc.unnamed

				e, errs := enforcement.Compile(&in)
				if len(errs) > 0 {
					t.Fatal(errs)
				}

				basis.Enforcements = append(basis.Enforcements, e)
			}

			widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}}
			if tc.bound {
				widget.Object["spec"] = map[string]any{
					"claimRef":     map[string]any{"apiVersion": "example.org/v1", "kind": "WidgetClaim", "namespace": "team-a", "name": "w"},
					"resourceRefs": []any{},
				}
			}

			if got := basis.RecordsEdits(widget, schema.GroupResource{Group: "example.org", Resource: "widgets"}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

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
		return decision.Decide(request.Request{
			Operation: request.OperationUpdate, Old: old, New: obj, Basis: request.Basis{Policies: set, Now: time.Unix(0, 0)},
			User: policy.User{Name: strings.Repeat("u", 1000), Groups: make([]string, 100)},
		}).Object
	}

	edited := ask(widget("a"), widget("b"))

	list, err := allowance.ParseStored(edited)
	if err != nil || len(list) != v1alpha1.MaxStored {
		t.Fatalf("%d edits, want %d: %v", len(list), v1alpha1.MaxStored, err)
	}

	if n := len(edited.GetAnnotations()[v1alpha1.AnnotationHeld]); n > 64<<10 {
		t.Errorf("the record takes %d bytes", n)
	}

	if list[len(list)-1].Field != "(more)" {
		t.Errorf("the last edit is %+v", list[len(list)-1])
	}
}
