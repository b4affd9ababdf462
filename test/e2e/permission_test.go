// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestWhoTheAuthorizerGrantsThePermissionMayInitiate has users with roles of all sorts, and
// compares what they may with what kubectl auth can-i says.
func TestWhoTheAuthorizerGrantsThePermissionMayInitiate(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-permission", "none")
	rule := func(verb, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{labGroup}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}

	cases := map[string]struct {
		reason  string
		rule    rbacv1.PolicyRule
		cluster bool
		group   string
		want    bool
	}{
		"role":        {reason: "A Role has the verb.", rule: rule("initiate:may", "plans/kausality"), want: true},
		"general":     {reason: "A Role has the general verb.", rule: rule("initiate", "plans/kausality"), want: true},
		"clusterrole": {reason: "A ClusterRole has it.", rule: rule("initiate:may", "plans/kausality"), cluster: true, want: true},
		"named":       {reason: "A Role has it for the object.", rule: rule("initiate:may", "plans/kausality", "plan"), want: true},
		"other":       {reason: "And for another object.", rule: rule("initiate:may", "plans/kausality", "another")},
		"group":       {reason: "A group has it.", rule: rule("initiate:may", "plans/kausality"), group: "lab-initiators", want: true},
		"narrow":      {reason: "Another Permission is another verb.", rule: rule("initiate:size", "plans/kausality")},
		"editor":      {reason: "Who may do all with the kind may not.", rule: rule("*", "plans"), cluster: true},
		"all":         {reason: "Who may do all with all of its group may.", rule: rule("*", "*"), want: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			who := "lab-permission-" + name
			groups := []string{"system:authenticated"}
			subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}

			if tc.group != "" {
				groups = append(groups, tc.group)
				subject = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: tc.group}
			}

			l.grant(t, who, subject, tc.rule, tc.cluster)
			l.grant(t, who+"-patches", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}, rule("patch", "plans"), false)

			as := impersonate(t, who, groups...)

			if err := scenario.Eventually(t.Context(), "a verdict", func(ctx context.Context) error {
				can, err := l.can(ctx, who, groups)
				if err != nil {
					return err
				}

				plan := l.plan.DeepCopy()
				if err := as.Patch(ctx, plan, world.Merge(`{"spec": {"settings": {"may.lab.example.org/cost": "a"}}}`), client.DryRunAll); err != nil {
					return err
				}

				may := resource.Annotation(plan, v1alpha1.AnnotationAllowances) != ""
				if can != tc.want || may != can {
					return fmt.Errorf("%s kubectl auth can-i says %t, and the change is allowed: %t: %w", tc.reason, can, may, world.ErrOther)
				}

				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// grant gives a subject a role of a name.
func (l lab) grant(t *testing.T, name string, subject rbacv1.Subject, rule rbacv1.PolicyRule, cluster bool) {
	t.Helper()

	meta := metav1.ObjectMeta{Name: name, Namespace: l.namespace}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
	}

	if cluster {
		meta.Namespace = ""
		objects = []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			},
		}
	}

	for _, obj := range objects {
		if err := l.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(t.Context()), obj) })
	}
}

// can is what kubectl auth can-i says of either verb.
func (l lab) can(ctx context.Context, who string, groups []string) (bool, error) {
	for _, verb := range []string{"initiate", "initiate:may"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who, Groups: groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: l.namespace, Verb: verb, Group: labGroup, Resource: "plans", Subresource: "kausality", Name: "plan",
			},
		}}

		if err := l.Create(ctx, review); err != nil || review.Status.Allowed {
			return review.Status.Allowed, err
		}
	}

	return false, nil
}
