// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

func TestAKindIsGovernedWhereAPolicySaysWhoMayChangeIt(t *testing.T) {
	const match = "metadata: {name: p}, spec: {match: {apiGroup: example.org, kind: Store, fields: [spec.size]}, "

	store := schema.GroupKind{Group: "example.org", Kind: "Store"}

	for name, tc := range map[string]struct {
		policy string
		kind   schema.GroupKind
		want   bool
	}{
		"Initiators":        {"{" + match + "subjects: [{kind: User, name: hans, mayInitiate: true}], allow: [{kind: ConfigMap, mutations: [data.size]}]}}", store, true},
		"Nobody":            {"{" + match + "subjects: [{kind: User, name: crossplane}]}}", store, true},
		"CarriedOn":         {"{" + match + "subjects: [{kind: User, name: crossplane}], allow: [{kind: ConfigMap, mutations: [data.size]}]}}", store, false},
		"AboutAnotherThing": {"{" + match + "subjects: [{kind: User, name: hans, mayInitiate: true}], allow: [{kind: ConfigMap, mutations: [data.size]}]}}", schema.GroupKind{Group: "example.org", Kind: "Shelf"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policy.NewSet(compile(t, tc.policy)).Governs(tc.kind); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}

	if (*policy.Set)(nil).Governs(store) {
		t.Error("without policies it is governed")
	}
}
