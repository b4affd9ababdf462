// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

func TestWhatAWindowAllowsIsCheckedAgainstEveryKindItNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		allow  v1alpha1.Permission
		want   []v1alpha1.TypeCheckingWarning
		known  int
	}{
		"Wrong": {
			"A path that no object of the kind has.",
			v1alpha1.Permission{APIGroup: "a", Kind: "Database", Mutations: []string{"spec.size", "spec.sice"}},
			[]v1alpha1.TypeCheckingWarning{{
				Field: "spec.allow[0].mutations[1]", Warning: "a/v1, kind Database: spec.sice: there is no such field; did you mean spec.size?",
			}},
			1,
		},
		"AnyGroup": {
			"Without a group it is of each.",
			v1alpha1.Permission{Kind: "Database", Mutations: []string{"spec.class"}},
			[]v1alpha1.TypeCheckingWarning{
				{Field: "spec.allow[0].mutations[0]", Warning: "v1, kind Database: spec.class: there is no such field; spec has size"},
				{Field: "spec.allow[0].mutations[0]", Warning: "a/v1, kind Database: spec.class: there is no such field; spec has size"},
			},
			3,
		},
		"External": {"Actions are no paths.", v1alpha1.Permission{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}}, nil, 0},
		"Unknown":  {"Of a kind that is not served nothing is known.", v1alpha1.Permission{Kind: "Queue", Mutations: []string{"spec.x"}}, nil, 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := v1alpha1.UpgradeAllowance{Spec: v1alpha1.UpgradeAllowanceSpec{Allow: []v1alpha1.Permission{tc.allow}}}

			s := &Schemas{Discovery: &fakeOpenAPI{fields: map[string]string{"api/v1": "size", "apis/a/v1": "size", "apis/b/v1": "class"}}}
			s.Refresh(t.Context(), nil, typedKinds, typecheck.WindowKinds([]v1alpha1.UpgradeAllowance{u}, typedKinds)...)

			if diff := cmp.Diff(tc.want, typecheck.Warnings(typecheck.Window(&u, typedKinds, s.of))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if len(s.known) != tc.known {
				t.Errorf("%s\n%d schemas are known, want %d", tc.reason, len(s.known), tc.known)
			}
		})
	}
}
