// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/composed"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/rights"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/shard"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/status"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/webhooks"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/windows"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// cluster is a Reconciler of a cluster with one policy about ConfigMaps.
func cluster(t *testing.T, funcs interceptor.Funcs) (*Reconciler, client.Client) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme),
		admissionregistrationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	p := fixture.Documents[v1alpha1.AllowancePolicy](t,
		`{metadata: {name: p}, spec: {match: {kind: ConfigMap, fields: [data]}, allow: [{kind: ConfigMap, mutations: [data]}]}}`)[0]
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&p).WithStatusSubresource(&p).WithInterceptorFuncs(funcs).Build()
	lists := []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Kind: "ConfigMap", Verbs: metav1.Verbs{"get", "update"}},
	}}}

	main, err := shard.New("")
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now
	reg, recorder := prometheus.NewRegistry(), events.NewFakeRecorder(10)

	exceptions, err := status.NewExceptions(reg, recorder)
	if err != nil {
		t.Fatal(err)
	}

	unattended, err := shard.NewUnattended(reg, main, c, recorder, "kausality-system", now)
	if err != nil {
		t.Fatal(err)
	}

	disco := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}
	w := watch.NewWatches(nil, now)
	w.Cancel() // None can be watched here.

	r := &Reconciler{
		Client: c, Reader: c, Shard: main, Now: now, Watches: w, Composed: &composed.Kinds{}, Windows: &windows.Reconciler{},
		OpenGates: func() map[schema.GroupKind][]types.NamespacedName { return nil },
		Resolver:  &discovery.Resolver{Discovery: disco, Crds: c, Live: c, Described: map[string]discovery.Shape{}},
		Adoption:  &deletion.Adoption{Live: c, Watches: w}, Exceptions: exceptions, Unattended: unattended,
		Applier: &webhooks.Applier{Client: c}, Definitions: &Definitions{Client: c, Reader: c, Live: c},
		Rights: rights.NewRights(nil), Ungated: gates.NewUngated(watch.NewPrompt()), Unlisted: discovery.NewUnlisted(now),
	}
	r.Statuses = &status.Reporter{Client: c, Schemas: &status.Schemas{Discovery: disco}, Rights: r.Rights, Ungated: r.Ungated}

	return r, c
}

func TestAnErrorOfOneStepStopsNoOtherThatDoesNotDependOnIt(t *testing.T) {
	refused := func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return fixture.ErrRefused
	}
	r, c := cluster(t, interceptor.Funcs{Apply: refused})

	_, err := r.Reconcile(t.Context(), reconcile.Request{})

	// Each guard is tried, our CRDs are not there, and all of that is returned.
	for _, want := range []string{
		`cannot keep guard "kausality-crd-allowancepolicies"`, `cannot keep guard "kausality-crd-upgradeallowances"`,
		"cannot get CustomResourceDefinition",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}

	p := &v1alpha1.AllowancePolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "p"}, p); err != nil {
		t.Fatal(err)
	}

	// Functions find the policy, and nobody is told that it is in force.
	if len(p.GetLabels()) == 0 {
		t.Error("the policy has no label")
	}

	if len(p.Status.Conditions) > 0 {
		t.Errorf("conditions %v, though there is no guard", p.Status.Conditions)
	}
}
