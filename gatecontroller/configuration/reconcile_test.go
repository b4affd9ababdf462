// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubediscovery "k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/windows"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// newScheme makes a scheme. The fake client adds to its own, so a cache has another.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme),
		admissionregistrationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	return scheme
}

// cluster is a Reconciler of a cluster with one policy about ConfigMaps.
func cluster(t *testing.T, funcs interceptor.Funcs) (*Reconciler, client.Client) {
	t.Helper()

	p := fixture.Documents[v1alpha1.AllowancePolicy](t,
		`{metadata: {name: p}, spec: {match: {kind: ConfigMap, fields: [data]}, allow: [{kind: ConfigMap, mutations: [data]}]}}`)[0]
	c := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(&p).WithStatusSubresource(&p).WithInterceptorFuncs(funcs).Build()
	lists := []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Verbs: metav1.Verbs{"get", "update"}},
	}}}

	now := time.Now

	disco := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}
	w := watch.NewWatches(&fixture.Cache{FakeInformers: &informertest.FakeInformers{Scheme: newScheme(t)}}, now)
	w.Object = func(schema.GroupVersionKind) reconcile.Reconciler { return reconcile.Func(nil) }
	w.Release = func(context.Context, schema.GroupVersionKind) error { return nil }
	w.Dropped = func(schema.GroupKind) {}

	t.Cleanup(func() {
		w.Cancel()
		w.Stop()
	})

	r := (&Reconciler{
		Client: c, Reader: c, Watches: w, Composed: &discovery.Kinds{}, Windows: &windows.Reconciler{},
		OpenGates: func() map[schema.GroupKind][]types.NamespacedName { return nil },
		Resolver:  &discovery.Resolver{Discovery: disco, Crds: c, Live: c, Described: map[string]discovery.Shape{}},
		Adoption:  &deletion.Adoption{Live: c, Watches: w},
		Applier:   &Applier{Client: c, Webhook: &Webhook{URL: "https://127.0.0.1:9443", Trust: trusted{}}},
		Rights:    status.NewRights(nil), Ungated: gates.NewUngated(watch.NewPrompt()), Unlisted: discovery.NewUnlisted(now),
	}).Init()
	r.Statuses = (&status.Reporter{
		Client: c, Schemas: &status.Schemas{Discovery: withoutSchemas{disco}}, Rights: r.Rights, Ungated: r.Ungated,
		Parameters: &status.Parameters{},
	}).Init()

	return r, c
}

// withoutSchemas is discovery that publishes no schema.
type withoutSchemas struct {
	kubediscovery.DiscoveryInterface
}

func (withoutSchemas) OpenAPIV3() openapi.Client { return openapitest.NewFakeClient() }

// trusted is a CA that never changes.
type trusted struct{}

func (trusted) Bundle() []byte           { return nil }
func (trusted) Changed() <-chan struct{} { return nil }

// asked takes the requests that are asked for, sorted.
func asked(r *Reconciler) []Request {
	var out []Request

	for {
		select {
		case e := <-r.requests:
			out = append(out, e.Object)
		default:
			slices.Sort(out)

			return out
		}
	}
}

// walk has a request reconciled, and says what it asks for.
func walk(t *testing.T, r *Reconciler, req Request) []Request {
	t.Helper()

	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Fatalf("%s: %v", req, err)
	}

	return asked(r)
}

// refusing refuses what is applied of some kinds.
func refusing(kinds ...string) interceptor.Funcs {
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			raw, err := json.Marshal(obj)
			if err != nil {
				return err
			}

			for _, kind := range kinds {
				if strings.Contains(string(raw), `"kind":"`+kind+`"`) {
					return fixture.ErrRefused
				}
			}

			return c.Apply(ctx, obj, opts...)
		},
	}
}

// ready reports whether the policy is reported in force once its status is reconciled.
func ready(t *testing.T, r *Reconciler, c client.Client) bool {
	t.Helper()

	req := reconcile.Request{NamespacedName: client.ObjectKey{Name: "p"}}
	if _, err := (status.Policies{Reporter: r.Statuses}).Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}

	p := &v1alpha1.AllowancePolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "p"}, p); err != nil {
		t.Fatal(err)
	}

	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

func TestThePartsOfAPlanFollowOneAnother(t *testing.T) {
	r, c := cluster(t, interceptor.Funcs{})

	for _, early := range []Request{Guards, Watches, Webhooks, Status, Adoption, Prune} {
		if got := walk(t, r, early); len(got) > 0 || r.done[early] != nil {
			t.Errorf("%s without a plan: asks for %v", early, got)
		}
	}

	all := []Request{Adoption, Guards, Prune, Status, Watches, Webhooks}

	for i, step := range []struct {
		req  Request
		want []Request
	}{
		{Kinds, all},
		{Webhooks, nil}, // Neither guarded nor watched.
		{Guards, []Request{Webhooks}},
		{Webhooks, nil}, // Not watched.
		{Watches, []Request{Webhooks}},
		{Prune, nil},  // The webhook may still be asked.
		{Status, nil}, // Not in force.
		{Webhooks, []Request{Prune, Status}},
		{Prune, nil}, // What waits for us is not found yet.
		{Status, nil},
		{Adoption, []Request{Prune}},
		{Prune, nil},
		{Webhooks, nil}, // With another CA, for instance: nothing else follows.
	} {
		if diff := cmp.Diff(step.want, walk(t, r, step.req)); diff != "" {
			t.Errorf("step %d, %s asks for, -want, +got:\n%s", i, step.req, diff)
		}
	}

	for req := range r.parts() {
		if r.done[req] != r.plan {
			t.Errorf("%s is not done", req)
		}
	}

	if !ready(t, r, c) {
		t.Error("the policy is not reported in force")
	}

	// Each part is done anew for a new plan.
	walk(t, r, Kinds)

	if got := walk(t, r, Webhooks); len(got) > 0 || r.done[Webhooks] == r.plan {
		t.Error("the webhooks of a plan are applied before its guards")
	}
}

func TestAnErrorOfOnePartStopsNoOtherThatDoesNotComeAfterIt(t *testing.T) {
	cases := map[string]struct {
		reason string
		refuse string
		// failing is the part that fails, done those that are done, and undone those
		// that wait.
		failing      Request
		done, undone []Request
	}{
		"Guards": {
			reason: "What is not guarded is not stamped, and not reported in force.", refuse: "ValidatingAdmissionPolicy",
			failing: Guards, done: []Request{Watches, Adoption}, undone: []Request{Webhooks, Status, Prune},
		},
		"Webhooks": {
			reason: "What the webhook is not asked about is not in force, and nothing is released.", refuse: "MutatingWebhookConfiguration",
			failing: Webhooks, done: []Request{Guards, Watches, Adoption}, undone: []Request{Status, Prune},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c := cluster(t, refusing(tc.refuse))

			for _, req := range []Request{Kinds, Guards, Watches, Webhooks, Status, Adoption, Prune} {
				_, err := r.Reconcile(t.Context(), req)
				if (err != nil) != (req == tc.failing) {
					t.Errorf("%s\n%s: %v", tc.reason, req, err)
				}
			}

			for _, req := range tc.done {
				if r.done[req] != r.plan {
					t.Errorf("%s\n%s is not done", tc.reason, req)
				}
			}

			for _, req := range tc.undone {
				if r.done[req] != nil {
					t.Errorf("%s\n%s is done", tc.reason, req)
				}
			}

			if ready(t, r, c) {
				t.Errorf("%s\nthe policy is reported in force", tc.reason)
			}
		})
	}
}

func TestAKindThatIsNoLongerGovernedIsReleasedOnceTheWebhookIsNotAsked(t *testing.T) {
	r, c := cluster(t, interceptor.Funcs{})

	var released []string

	r.Watches.Release = func(_ context.Context, gvk schema.GroupVersionKind) error {
		released = append(released, gvk.Kind)

		return nil
	}

	all := []Request{Kinds, Guards, Watches, Webhooks, Status, Adoption, Prune}
	for _, req := range all {
		walk(t, r, req)
	}

	if len(r.Watches.Kinds()) != 1 || len(released) > 0 {
		t.Fatalf("watched: %v, released: %v", r.Watches.Kinds(), released)
	}

	p := &v1alpha1.AllowancePolicy{}
	p.SetName("p")

	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}

	for _, req := range []Request{Kinds, Guards, Watches, Adoption, Prune} {
		walk(t, r, req)
	}

	if len(released) > 0 {
		t.Errorf("released %v while the webhook is asked about them", released)
	}

	walk(t, r, Webhooks)
	walk(t, r, Prune)

	if diff := cmp.Diff([]string{"ConfigMap"}, released); diff != "" {
		t.Errorf("released, -want, +got:\n%s", diff)
	}
}

// TestTheWebhookIsAskedAboutAKindWhoseDefinitionIsAway as long as a policy names it.
func TestTheWebhookIsAskedAboutAKindWhoseDefinitionIsAway(t *testing.T) {
	r, c := cluster(t, interceptor.Funcs{})
	applied := func() []string {
		for _, req := range []Request{Kinds, Guards, Watches, Webhooks} {
			walk(t, r, req)
		}

		hooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: v1alpha1.NameWebhooks}, hooks); err != nil {
			t.Fatal(err)
		}

		return fixture.Asked(hooks.Webhooks[0].Rules)
	}

	want := applied()
	r.Resolver.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}

	if diff := cmp.Diff(want, applied()); diff != "" {
		t.Errorf("-before, +away:\n%s", diff)
	}

	if len(r.plan.observed.served) > 0 {
		t.Errorf("%v is served", r.plan.observed.served)
	}
}

func TestWhatCannotBeReadIsRetriedAndPlansNothing(t *testing.T) {
	r, _ := cluster(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return fixture.ErrRefused
	}})

	if _, err := r.Reconcile(t.Context(), Kinds); !errors.Is(err, fixture.ErrRefused) || r.plan != nil || len(asked(r)) > 0 {
		t.Errorf("error %v, plan %v", err, r.plan)
	}
}
