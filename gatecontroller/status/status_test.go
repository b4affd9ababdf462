// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const enforcementSpec = `, spec: {match: {resourceRules: [{apiGroups: [apps], resources: [deployments]}]}, validationActions: [Deny]}}`

// reporting is a configuration over a cluster that has some objects, and what is
// wanted of these and of others that are gone.
func reporting(t *testing.T, calls interceptor.Funcs, gone ...string) (*Reporter, admission.Config, client.Client) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	want := admission.Config{
		Policies:     fixture.Documents[v1alpha1.AllowancePolicy](t, fixture.RolloutPolicy, fixture.DeletePolicy),
		Enforcements: fixture.Documents[v1alpha1.Enforcement](t, `{metadata: {name: a}`+enforcementSpec, `{metadata: {name: b}`+enforcementSpec),
	}

	b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(calls).
		WithStatusSubresource(&v1alpha1.AllowancePolicy{}, &v1alpha1.Enforcement{})

	there := func(obj client.Object) {
		for _, name := range gone {
			if obj.GetName() == name {
				return
			}
		}

		b.WithObjects(obj)
	}

	for i := range want.Policies {
		want.Policies[i].SetUID(types.UID("policy-" + want.Policies[i].GetName()))
		there(want.Policies[i].DeepCopy())
	}

	for i := range want.Enforcements {
		want.Enforcements[i].SetUID(types.UID("enforcement-" + want.Enforcements[i].GetName()))
		there(want.Enforcements[i].DeepCopy())
	}

	c := b.Build()

	return (&Reporter{Client: c, Schemas: &Schemas{Discovery: &fakeOpenAPI{}}, Ungated: gates.NewUngated(watch.NewPrompt()), Parameters: &Parameters{}}).Init(), want, c
}

// reportAll has everything reconciled that is asked for once something is applied.
func reportAll(t *testing.T, s *Reporter, in Applied) error {
	t.Helper()

	s.Set(t.Context(), in)

	var errs []error

	for _, one := range []struct {
		names <-chan nameEvent
		by    reconcile.Reconciler
	}{{s.policies, Policies{s}}, {s.enforcements, Enforcements{s}}} {
		select {
		case e := <-one.names:
			for _, name := range e.Object {
				_, err := one.by.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
				errs = append(errs, err)
			}
		default:
		}
	}

	return errors.Join(errs...)
}

// inCluster is that all is applied in a cluster of some kinds.
func inCluster(want admission.Config, kinds []kind.Served) Applied {
	return Applied{Want: want, Listed: kinds, Named: kinds}
}

// readyNames are the policies and Enforcements of which a Ready condition is stored.
func readyNames(t *testing.T, c client.Client) string {
	t.Helper()

	var out []string

	policies, enforcements := &v1alpha1.AllowancePolicyList{}, &v1alpha1.EnforcementList{}
	if err := errors.Join(c.List(t.Context(), policies), c.List(t.Context(), enforcements)); err != nil {
		t.Fatal(err)
	}

	for _, p := range policies.Items {
		if meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady) != nil {
			out = append(out, p.GetName())
		}
	}

	for _, e := range enforcements.Items {
		if meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady) != nil {
			out = append(out, e.GetName())
		}
	}

	return strings.Join(out, " ")
}

func TestOneThatIsDeletedMeanwhilePreventsNoOtherFromBeingReported(t *testing.T) {
	c, want, cluster := reporting(t, interceptor.Funcs{}, "p", "a")

	if err := reportAll(t, c, inCluster(want, fixture.ServedKinds())); err != nil {
		t.Errorf("what is gone needs no status: %v", err)
	}

	if got := readyNames(t, cluster); got != "q b" {
		t.Errorf("reported: %q, want the ones that are there, q and b", got)
	}
}

func TestOneWhoseStatusIsRefusedPreventsNoOtherFromBeingReported(t *testing.T) {
	c, want, cluster := reporting(t, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if obj.GetName() == "p" || obj.GetName() == "a" {
				return fixture.ErrRefused
			}

			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})

	err := reportAll(t, c, inCluster(want, fixture.ServedKinds()))
	if !errors.Is(err, fixture.ErrRefused) || !strings.Contains(err.Error(), `AllowancePolicy "p"`) || !strings.Contains(err.Error(), `Enforcement "a"`) {
		t.Errorf("each that is refused is named, to be tried again: %v", err)
	}

	if got := readyNames(t, cluster); got != "q b" {
		t.Errorf("reported: %q, want the others, q and b", got)
	}
}

func TestAnEnforcementReportsResourcesThatAreNotNamedAsTheirKindsSuggest(t *testing.T) {
	c, want, cluster := reporting(t, interceptor.Funcs{})
	e := &want.Enforcements[0]

	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}

	e.Spec.Match = v1alpha1.EnforcementMatch{
		ResourceRules:        []v1alpha1.ResourceRule{{APIGroups: []string{"net.example.org"}, Resources: []string{"*"}}},
		ExcludeResourceRules: []v1alpha1.ResourceRule{{APIGroups: []string{"net.example.org"}, Resources: []string{"gateways", "policies"}}},
	}

	if err := cluster.Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}

	of := func(group, name, resource string) kind.Served {
		return kind.Served{GVK: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}, Resource: resource}
	}

	served := []kind.Served{
		of("net.example.org", "Gateway", "gateways"), of("net.example.org", "Key", "keys"), of("net.example.org", "Policy", "policies"),
		of("other.example.org", "Gateway", "gateways"),
	}

	if err := reportAll(t, c, inCluster(want, served)); err != nil {
		t.Fatal(err)
	}

	got := &v1alpha1.Enforcement{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: "a"}, got); err != nil {
		t.Fatal(err)
	}

	// Policies are named as their kind suggests; keys are not, and no rule tells them
	// from others; nor is the other group one of the rules'.
	told := []v1alpha1.NamedResource{{Group: "net.example.org", Kind: "Gateway", Resource: "gateways"}}
	if diff := cmp.Diff(told, got.Status.Resources); diff != "" {
		t.Errorf("resources, -want, +got:\n%s", diff)
	}
}
