// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// TestTheGateControllerShowsNoCredential moves the gates of what was decided of
// managed resources with credentials, and searches for them in all that is said.
func TestTheGateControllerShowsNoCredential(t *testing.T) {
	all, err := corpus.Planting()
	if err != nil {
		t.Fatal(err)
	}

	moved := 0

	for _, s := range all {
		if s.Request == nil || !resource.IsManaged(s.New) {
			continue
		}

		req, _ := s.Decision()
		stored := decision.Decide(req).Object

		for _, object := range []*unstructured.Unstructured{stored, withAllowance(stored), withAllowance(s.Old)} {
			moved++

			t.Run(s.Name, func(t *testing.T) {
				for _, text := range heard(t, object, req.Basis.Now) {
					if corpus.Leaks(text) {
						t.Errorf("it tells a credential: %s", text)
					}
				}
			})
		}
	}

	if moved == 0 {
		t.Error("no gate was moved")
	}
}

// withAllowance is an object whose gate is to be opened.
func withAllowance(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	annotations := out.GetAnnotations()
	annotations[v1alpha1.AnnotationAllowances] = "- {relation: External, mutations: [Update], generation: 8, initiator: hans@example.com, id: '8.0', source: {type: Policy}}\n"
	annotations[v1alpha1.AnnotationGate] = "{v: 1, state: Closed, generation: 7, since: \"2024-01-05T10:00:00Z\"}\n"
	out.SetAnnotations(annotations)

	return out
}

// heard is all that the gate controller says of a managed resource. What it
// writes is not applied: only the annotations count.
func heard(t *testing.T, u *unstructured.Unstructured, now time.Time) []string {
	t.Helper()

	var said []string

	book, err := NewLedger(prometheus.NewRegistry(), time.Now)
	if err != nil {
		t.Fatal(err)
	}

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			raw, err := json.Marshal(obj)
			said = append(said, string(raw))

			return err
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
	})

	recorder := events.NewFakeRecorder(100)
	g := &Mover{
		Client: live, Events: recorder, Ungated: NewUngated(nil), Now: func() time.Time { return now },
		Opts:     gate.Options{LateInitialize: true, Settle: time.Minute, MaxOpen: time.Hour},
		Policies: &PolicyGates{Reader: live, Compiled: policy.NewCache()}, Ledger: book, Openers: Openers{Reader: live},
	}

	ctx := log.IntoContext(t.Context(), funcr.New(func(prefix, args string) { said = append(said, prefix+args) }, funcr.Options{Verbosity: 10}))

	if _, err := g.Reconcile(ctx, u, true); err != nil {
		said = append(said, err.Error())
	}

	for len(recorder.Events) > 0 {
		said = append(said, <-recorder.Events)
	}

	if len(said) == 0 {
		t.Log("it says nothing")
	}

	return said
}
