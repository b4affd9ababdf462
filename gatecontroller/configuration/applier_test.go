// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// authority is the certificate of a CA.
type authority string

func (b authority) Bundle() []byte         { return []byte(b) }
func (authority) Changed() <-chan struct{} { return nil }

// server is an API server that refuses to apply what a name contains.
func server(t *testing.T, refuse string) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if named, ok := obj.(interface{ GetName() string }); ok && refuse != "" && strings.Contains(named.GetName(), refuse) {
				return fixture.ErrRefused
			}

			return c.Apply(ctx, obj, opts...)
		},
	}).Build()
}

func TestWebhookConfigurationsCarryTheCAThatThereIsNow(t *testing.T) {
	cases := map[string]struct {
		reason  string
		webhook *Webhook
		refuse  string
		// url is that of each webhook; none are there where it is empty.
		url string
		err error
	}{
		"URL":     {reason: "It is asked at its URL.", webhook: &Webhook{URL: "https://127.0.0.1:9443", MutatePath: "/mutate", EnforcePath: "/enforce", ValidatePath: "/validate", ApprovePath: "/approve", Trust: authority("ca")}, url: "https://127.0.0.1:9443/"},
		"None":    {reason: "Where there is no webhook, nothing is asked."},
		"Refused": {reason: "What cannot be applied is an error.", webhook: &Webhook{URL: "https://127.0.0.1:9443", Trust: authority("ca")}, refuse: "kausality", err: fixture.ErrRefused},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := server(t, tc.refuse)
			a := &Applier{Client: c, Webhook: tc.webhook, Hooks: admission.Options{Namespace: "kausality-system"}}
			policies := fixture.Documents[v1alpha1.AllowancePolicy](t,
				`{metadata: {name: p}, spec: {match: {kind: ConfigMap, fields: [data]}, allow: [{kind: ConfigMap, mutations: [data]}]}}`)
			named, _ := kind.Named(fixture.ServedKinds(), kind.Names(policies, nil))

			err := a.ApplyWebhooks(t.Context(), admission.GovernedKinds(admission.Config{Policies: policies}, named, nil), nil, nil)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\nerror %v", tc.reason, err)
			}

			list := &admissionregistrationv1.MutatingWebhookConfigurationList{}
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}

			if (len(list.Items) > 0) != (tc.url != "") {
				t.Fatalf("%s\n%d configurations", tc.reason, len(list.Items))
			}

			for _, cfg := range list.Items {
				for _, w := range cfg.Webhooks {
					if w.ClientConfig.URL == nil || !strings.HasPrefix(*w.ClientConfig.URL, tc.url) || string(w.ClientConfig.CABundle) != "ca" {
						t.Errorf("%s\n%s is asked by %v", tc.reason, w.Name, w.ClientConfig)
					}
				}
			}
		})
	}
}

func TestAGuardThatCannotBeAppliedPreventsNoOther(t *testing.T) {
	guards := func(kinds ...kind.Served) []admission.Guard { return admission.Options{}.Guards(kinds, nil) }

	cases := map[string]struct {
		reason string
		refuse string
		then   []admission.Guard
		want   []string
		err    error
	}{
		"All":     {reason: "Each has a policy and a binding.", want: []string{v1alpha1.NameDeleteGuard, v1alpha1.NameWriterGuard}},
		"Refused": {reason: "One that is refused is an error, the others are there.", refuse: v1alpha1.NameWriterGuard, want: []string{v1alpha1.NameDeleteGuard}, err: fixture.ErrRefused},
		"Empty":   {reason: "One without kinds goes.", then: guards(), want: []string{}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := server(t, tc.refuse)
			a := &Applier{Client: c}

			err := a.ApplyGuards(t.Context(), guards(fixture.ServedKinds()...))
			if !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.refuse) {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}

			for range 2 { // What is gone already is no error.
				if err := a.ApplyGuards(t.Context(), tc.then); err != nil {
					t.Error(err)
				}
			}

			policies, bindings := &admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
			if err := errors.Join(c.List(t.Context(), policies), c.List(t.Context(), bindings)); err != nil {
				t.Fatal(err)
			}

			got := make([]string, 0, len(policies.Items))
			for i := range policies.Items {
				got = append(got, policies.Items[i].GetName())
			}

			slices.Sort(got)

			if diff := cmp.Diff(tc.want, got); diff != "" || len(bindings.Items) != len(got) {
				t.Errorf("%s\npolicies, -want, +got:\n%s, %d bindings", tc.reason, diff, len(bindings.Items))
			}
		})
	}
}

func TestItIsKnownSinceWhenAGuardIsThere(t *testing.T) {
	made := metav1.NewTime(time.Date(2026, time.January, 6, 12, 0, 0, 0, time.UTC))
	g := admission.BindGuard()

	// An API server that answers with what it has stored.
	answering := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			stored, ok := obj.(interface{ SetCreationTimestamp(made metav1.Time) })
			if !ok {
				return fixture.ErrRefused
			}

			stored.SetCreationTimestamp(made)

			return nil
		},
	}).Build()

	a := &Applier{Client: answering}
	if _, ok := a.GuardedSince(g.Policy.GetName()); ok {
		t.Error("known before it is applied")
	}

	if err := a.ApplyGuards(t.Context(), []admission.Guard{g}); err != nil {
		t.Fatal(err)
	}

	if since, ok := a.GuardedSince(g.Policy.GetName()); !ok || !since.Equal(made.Time) {
		t.Errorf("since %v, %t", since, ok)
	}
}
