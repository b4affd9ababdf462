// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

const (
	// kindLimit is that of parameters.
	kindLimit = "Limit"
	// limits are how many objects have parameters; policies and bindings share them.
	limits = 10
)

// nameAsked is the name of the parent that somebody asks to have changed: one of which nothing
// is said of generations that it never had.
const nameAsked = "asked"

// limitName is the name of the object that has the parameters of a policy or binding.
func limitName(i int) string { return fmt.Sprintf("limit-%d", i%limits) }

// boundUser is whom a binding lets initiate.
func boundUser(i int) string { return fmt.Sprintf("bound-%d@example.com", i) }

// bind makes policies with parameters, and bindings of them with parameters of their own, and
// waits until all of them are in force.
func (c *cluster) bind(tb testing.TB, policies, bindings int) {
	tb.Helper()

	// Crossplane does not run here, and has to be allowed to read parameters all the same.
	c.create(tb,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bench-limits"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{group}, Resources: []string{resourceOf(kindLimit)}, Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bench-limits"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bench-limits"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: stack.CrossplaneNamespace, Name: "crossplane"}},
		})
	c.define(tb, kindLimit)
	c.createAll(tb, limits, func(i int) client.Object { return newObject(kindLimit, limitName(i)) })
	c.createAll(tb, policies, func(i int) client.Object { return withParameters(newPolicy(i), i) })
	c.settled(tb, policies)
	c.createAll(tb, bindings, func(i int) client.Object { return newBinding(i, policies) })

	eventually(tb, "all bindings in force", func(ctx context.Context) error {
		list := &v1alpha1.AllowanceBindingList{}
		if err := c.admin.List(ctx, list); err != nil {
			return err
		}

		ready := 0

		for _, b := range list.Items {
			if meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}

		if ready < bindings {
			return fmt.Errorf("%d bindings are in force", ready)
		}

		return nil
	})
}

// withParameters has a policy compare with parameters, and be bound.
func withParameters(p *v1alpha1.AllowancePolicy, i int) *v1alpha1.AllowancePolicy {
	p.Spec.BindingMode = v1alpha1.BindingModeOptional
	p.Spec.ParamKind = &v1alpha1.ParamKind{APIVersion: group + "/v1", Kind: kindLimit}
	p.Spec.ParamRef = &v1alpha1.ParamRef{Name: limitName(i), Namespace: namespace, Overridable: true}
	p.Spec.Match.CEL = append(p.Spec.Match.CEL, "object.spec.size >= params.spec.size")

	return p
}

// newBinding makes a binding of one of some policies, with a condition and parameters of its own.
func newBinding(i, policies int) *v1alpha1.AllowanceBinding {
	return &v1alpha1.AllowanceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("parent-%d", i)},
		Spec: v1alpha1.AllowanceBindingSpec{
			Policy:   fmt.Sprintf("parent-%d", i%policies),
			Subjects: []v1alpha1.BindingSubject{{Kind: v1alpha1.BindingSubjectKind(v1alpha1.SubjectUser), Name: boundUser(i)}},
			MatchConditions: []v1alpha1.BindingCondition{{MatchCondition: v1alpha1.MatchCondition{
				Name: "sized", Expression: fmt.Sprintf("%s && object.spec.size <= %d", expression, i),
			}}},
			ParamRef: &v1alpha1.BindingParamRef{Name: limitName(i)},
		},
	}
}

// asked has somebody ask for a change that the last of some policies is about, and few others,
// which is allowed and not stored: whom the last of some bindings lets, or hans where there are
// none.
func (c *cluster) asked(tb testing.TB, policies, bindings int) {
	tb.Helper()

	by, who := c.hans, initiator

	if bindings > 0 {
		who = boundUser(bindings - 1)
		config := c.stack.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: who, Groups: []string{"system:masters"}}

		var err error
		if by, err = client.New(config, client.Options{}); err != nil {
			tb.Fatal(err)
		}
	}

	eventually(tb, "a change by "+who, func(ctx context.Context) error {
		u := newObject(kindParent, nameAsked)
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"settings": {%q: "another"}}}`, settingFor(policies-1)))

		if err := by.Patch(ctx, u, patch, client.DryRunAll); err != nil {
			return err
		}

		if got := resource.Annotation(u, v1alpha1.AnnotationAllowances); !strings.Contains(got, "generation: 2\n  id: \"2.0\"\n  initiator: "+who) {
			return fmt.Errorf("%w: %s", errUnstamped, got)
		}

		return nil
	})
}
