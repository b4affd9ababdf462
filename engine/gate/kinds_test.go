// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

func TestKindsAreNamedOneByOneByGroupOrAll(t *testing.T) {
	instance := schema.GroupKind{Group: "rds.aws.upbound.io", Kind: "Instance"}

	cases := map[string]struct {
		reason string
		kinds  []string
		want   bool
	}{
		"None":       {reason: "Nothing named is nothing.", kinds: nil, want: false},
		"Itself":     {reason: "A kind is named with its group.", kinds: []string{"Instance.rds.aws.upbound.io"}, want: true},
		"OtherKind":  {reason: "Another kind of the group is not meant.", kinds: []string{"Cluster.rds.aws.upbound.io"}, want: false},
		"OtherGroup": {reason: "Kind names collide across groups.", kinds: []string{"Instance.ec2.aws.upbound.io"}, want: false},
		"Group":      {reason: "A provider's runtime is that of all its kinds.", kinds: []string{"*.rds.aws.upbound.io"}, want: true},
		"Suffix":     {reason: "A group is a whole one.", kinds: []string{"*.aws.upbound.io"}, want: false},
		"All":        {reason: "One star is all.", kinds: []string{"Bucket.s3.aws.upbound.io", "*"}, want: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kinds, err := management.ParseKinds(tc.kinds)
			if err != nil {
				t.Fatal(err)
			}

			if got := kinds.Has(instance); got != tc.want {
				t.Errorf("%s\n%v: got %v, want %v", tc.reason, tc.kinds, got, tc.want)
			}
		})
	}

	for _, text := range []string{"", "Instance", ".rds.aws.upbound.io", "Instance.", "Inst*.rds.aws.upbound.io", "Instance.*", "*.*"} {
		if got, err := management.ParseKinds([]string{"*.example.org", text}); err == nil || !strings.Contains(err.Error(), `kind "`+text+`"`) {
			t.Errorf("%q: got %v, %v, want an error that names it", text, got, err)
		}
	}
}

func TestAKindOfAnOlderRuntimeIsClosedToObserve(t *testing.T) {
	u := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "old.example.org/v1", "kind": kind,
			"metadata": map[string]any{"generation": int64(2), "annotations": map[string]any{
				"kausality.io/gate": `{"v":1,"state":"Closed","generation":2,"since":"2026-01-01T00:00:00Z"}`,
			}},
			"spec": map[string]any{
				"forProvider": map[string]any{"size": "small"}, "managementPolicies": []any{"Observe", "LateInitialize"},
			},
			"status": map[string]any{"conditions": []any{
				map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "True"},
			}},
		}}
	}

	kinds, err := management.ParseKinds([]string{"Vault.old.example.org"})
	if err != nil {
		t.Fatal(err)
	}

	opts := gate.Options{LateInitialize: true, WithoutLateInitialize: kinds, Settle: time.Minute}

	// What a former version has closed stays so, where the provider knows that set.
	for kind, want := range map[string]struct {
		move gate.Move
		set  []string
	}{"Vault": {gate.CloseUp, []string{"Observe"}}, "Safe": {gate.Stay, []string{"Observe", "LateInitialize"}}} {
		plan, err := gate.PlanFor(u(kind), opts, time.Now())
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want.set, plan.Policies); diff != "" || plan.Move != want.move {
			t.Errorf("%s: %s, -want, +got:\n%s", kind, plan.Move, diff)
		}
	}
}
