// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestLabelsDistinguishKindsAndServiceAccounts(t *testing.T) {
	seen := map[string]string{}

	for name, want := range map[string]string{
		"system:serviceaccount:crossplane-system:crossplane":  "crossplane-system.crossplane",
		"system:serviceaccount:a:" + strings.Repeat("b", 253): "",
		"system:serviceaccount:a:" + strings.Repeat("b", 252): "",
		"somebody@example.com":                                "",
	} {
		for key, value := range policy.LabelsOfServiceAccount(name) {
			if want != "" && value != want {
				t.Errorf("label of %q: %s=%q, want %q", name, key, value, want)
			}

			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Errorf("label of %q: %q: %v", name, value, errs)
			}

			if other, ok := seen[value]; ok {
				t.Errorf("%q and %q have the same label %q", name, other, value)
			}

			seen[value] = name
		}
	}

	if got := policy.LabelsOfKind("Object"); !maps.Equal(got, map[string]string{"kind.kausality.io/Object": ""}) {
		t.Errorf("LabelsOfKind: %v", got)
	}

	one := map[string]string{"kind.kausality.io/Object": "", "kausality.io/kind": "Object"}
	if got := policy.LabelsOfMatch(&v1alpha1.Match{Kind: "Object"}); !maps.Equal(got, one) {
		t.Errorf("LabelsOfMatch: of one kind %v", got)
	}

	want := map[string]string{"kind.kausality.io/Object": "", "kind.kausality.io/Bucket": ""}
	if got := policy.LabelsOfMatch(&v1alpha1.Match{Kinds: []string{"Object", "Bucket"}}); !maps.Equal(got, want) {
		t.Errorf("LabelsOfMatch: of two kinds %v", got)
	}
}
