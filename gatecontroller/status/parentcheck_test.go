// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// allowing is a policy about Databases of a group that allows changes of Databases of group a.
func allowing(name, group string) v1alpha1.AllowancePolicy {
	return v1alpha1.AllowancePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AllowancePolicySpec{
		Match:    v1alpha1.Match{APIGroup: group, Kind: "Database", Fields: []string{"spec.class"}},
		Subjects: []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup, Name: "devs", MayInitiate: true}},
		Allow:    []v1alpha1.Permission{{APIGroup: "a", Kind: "Database", Mutations: []string{"spec.size"}}},
	}}
}

// TestAPolicyIsCheckedByTheKindsOfItsParents as far as other policies tell them.
func TestAPolicyIsCheckedByTheKindsOfItsParents(t *testing.T) {
	const (
		wrongParent = "parent.spec.classs == 'x'"
		asks        = "authorizer.requestResource.check('x').allowed()"
	)

	kinds := []kind.Served{
		{GVK: schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "Database"}},
		{GVK: schema.GroupVersionKind{Group: "b", Version: "v1", Kind: "Database"}, Crossplane: true, Composite: true},
		{GVK: schema.GroupVersionKind{Group: "c", Version: "v1", Kind: "Database"}, Crossplane: true},
	}

	checked := func(mode v1alpha1.BindingMode, subject v1alpha1.Subject, cel ...string) v1alpha1.AllowancePolicy {
		p := typedPolicy("a", "Database", cel...)
		p.SetName("checked")
		p.Spec.BindingMode, p.Spec.Subjects = mode, []v1alpha1.Subject{subject}

		return p
	}

	devs := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: "devs", MayInitiate: true}
	permission := v1alpha1.Subject{Kind: v1alpha1.SubjectPermission, Name: "size", MayInitiate: true}

	cases := map[string]struct {
		reason  string
		policy  v1alpha1.AllowancePolicy
		parents []v1alpha1.AllowancePolicy
		want    []v1alpha1.TypeCheckingWarning
	}{
		"OneKind": {
			"The parent is of the one kind that allows changes of children.", checked("", devs, wrongParent),
			[]v1alpha1.AllowancePolicy{allowing("p", "b")},
			[]v1alpha1.TypeCheckingWarning{{Field: "spec.match.cel[0]", Warning: "a/v1, kind Database: 1:12: undefined field 'classs'"}},
		},
		"OneKindRight": {
			"A root has none of that kind.", checked("", devs, "parent == null || parent.spec.class == 'x' && parent.metadata.name != ''"),
			[]v1alpha1.AllowancePolicy{allowing("p", "b")},
			nil,
		},
		"TwoKinds": {
			"Of several nobody knows which it is.", checked("", devs, wrongParent),
			[]v1alpha1.AllowancePolicy{allowing("p", "b"), allowing("q", "c")},
			nil,
		},
		"NoKind": {"Nor where nothing leads to it.", checked("", devs, wrongParent), nil, nil},
		"Composed": {
			"Composition functions ask no authorizer and read no bindings.", checked(v1alpha1.BindingModeRequired, permission, asks),
			[]v1alpha1.AllowancePolicy{allowing("p", "b")},
			[]v1alpha1.TypeCheckingWarning{
				{Field: "spec.match.cel[0]", Warning: "composition functions ask no authorizer: of what an XR composes nobody initiates a change there by this policy"},
				{Field: "spec.bindingMode", Warning: "composition functions read no AllowanceBindings: of what an XR composes nobody initiates a change there by this policy"},
				{Field: "spec.subjects[0]", Warning: "composition functions ask no authorizer: of what an XR composes nobody initiates a change there by this Permission"},
				{Field: "spec.match.cel[0]", Warning: "it reads now, the authorizer, or who asks and how: it decides who may initiate a change, " +
					"and counts as met where another policy or a window led to the change"},
			},
		},
		"OfAClaim": {
			"What a Claim has is asked about at the webhook alone.", checked(v1alpha1.BindingModeRequired, permission),
			[]v1alpha1.AllowancePolicy{allowing("p", "c")},
			nil,
		},
		"Root": {"So is what nothing is above.", checked(v1alpha1.BindingModeRequired, permission, asks), nil, nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := append([]v1alpha1.AllowancePolicy{tc.policy}, tc.parents...)

			s := &Schemas{Discovery: &fakeOpenAPI{fields: map[string]string{"apis/a/v1": "size", "apis/b/v1": "class", "apis/c/v1": "class"}}}
			s.Refresh(t.Context(), all, kinds)

			got := s.check(&tc.policy, kinds, typecheck.GrantsOf(all, nil))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
