// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// watching makes Watches of a cache.
func watching(t *testing.T, c *fixture.Cache, now func() time.Time) *watch.Watches {
	t.Helper()

	c.FakeInformers = &informertest.FakeInformers{Scheme: newScheme(t)}
	w := watch.NewWatches(c, now)
	w.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	}

	t.Cleanup(w.Stop)

	return w
}

// gated is a cluster with gates, XRs of a Composition that runs the function, and what
// they compose.
func gated(t *testing.T, texts ...string) (*Reconciler, []kind.Served) {
	t.Helper()

	r, _ := cluster(t, interceptor.Funcs{})

	bucket := schema.GroupVersionKind{Group: "aws.example.org", Version: "v1", Kind: "Bucket"}
	revision := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
	xr := schema.GroupVersionKind{Group: "shop.example.org", Version: "v1", Kind: "XStore"}
	served := []kind.Served{
		{GVK: revision, Resource: "compositionrevisions"}, {GVK: xr, Resource: "xstores"}, {GVK: bucket, Resource: "buckets", Definition: "buckets"},
	}

	objects := make([]unstructured.Unstructured, 0, len(texts))
	for _, text := range texts {
		objects = append(objects, *fixture.Parse(t, text))
	}

	w := watching(t, &fixture.Cache{Objects: objects}, r.Watches.Now)

	r.Gated, r.Watches, r.guarded = true, w, map[schema.GroupResource]bool{}
	r.Composed = &discovery.Kinds{Functions: []string{"function-kausality"}, Watches: w, Prompt: watch.NewPrompt()}
	open := extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	fields := map[string]extv1.JSONSchemaProps{"spec": {Type: "object", Properties: map[string]extv1.JSONSchemaProps{
		"managementPolicies": open, "forProvider": open,
	}}}
	crd := &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "buckets.aws.example.org"},
		Spec: extv1.CustomResourceDefinitionSpec{Versions: []extv1.CustomResourceDefinitionVersion{{
			Name: "v1", Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", Properties: fields}},
		}}},
	}

	if err := r.Client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}

	return r, served
}

const (
	revisionThatRuns = `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: stores-1},
		spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: XStore}, pipeline: [{step: k, functionRef: {name: function-kausality}}]}}`
	storeOfABucket = `{apiVersion: shop.example.org/v1, kind: XStore, metadata: {name: corner, uid: s},
		spec: {crossplane: {compositionRevisionRef: {name: stores-1}, resourceRefs: [{apiVersion: aws.example.org/v1, kind: Bucket, name: b}]}}}`
	orphanedBucket = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, uid: b, finalizers: [kausality.io/gate],
		annotations: {kausality.io/gate: '{v: 1, state: Closed}'},
		ownerReferences: [{apiVersion: shop.example.org/v1, kind: XStore, name: gone, uid: g, controller: true}]},
		spec: {managementPolicies: [Observe], forProvider: {}}}`
)

func names(list []kind.Served) []string {
	out := make([]string, len(list))
	for i, k := range list {
		out[i] = k.GVK.Kind
	}

	return out
}

func TestAKindIsGatedThatXRsComposeAndAsLongAsSomethingIsLeft(t *testing.T) {
	cases := map[string]struct {
		reason   string
		objects  []string
		guarded  bool
		watching []string
		gated    []string
		watched  []string
		complete bool
	}{
		"Composed": {
			reason: "What an XR composes by the function is gated, though nothing names it.", objects: []string{revisionThatRuns, storeOfABucket},
			watching: []string{"CompositionRevision", "XStore"}, gated: []string{"Bucket"}, watched: []string{"Bucket", "CompositionRevision", "XStore"}, complete: true,
		},
		"NotYet": {
			reason: "Not all is known before XRs are watched.", objects: []string{revisionThatRuns, storeOfABucket},
			watching: []string{"CompositionRevision"}, gated: []string{}, watched: []string{"CompositionRevision", "XStore"},
		},
		"Nothing": {
			reason: "What nothing composes is not.", watching: []string{"CompositionRevision"},
			gated: []string{}, watched: []string{"CompositionRevision"}, complete: true,
		},
		"WasUnknown": {
			reason: "What was guarded before stays so until its objects are known.", guarded: true, watching: []string{"CompositionRevision"},
			gated: []string{"Bucket"}, watched: []string{"Bucket", "CompositionRevision"},
		},
		"WasAndIsEmpty": {
			reason: "Once nothing is left of it, it is not any more.", guarded: true, watching: []string{"CompositionRevision", "Bucket"},
			gated: []string{}, watched: []string{"CompositionRevision"}, complete: true,
		},
		"Orphaned": {
			reason: "What is orphaned keeps its guards.", guarded: true, objects: []string{orphanedBucket},
			watching: []string{"CompositionRevision", "Bucket"}, gated: []string{"Bucket"}, watched: []string{"Bucket", "CompositionRevision"}, complete: true,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, served := gated(t, tc.objects...)
			if tc.guarded {
				r.guarded[schema.GroupResource{Group: "aws.example.org", Resource: "buckets"}] = true
			}

			for _, k := range served {
				for _, name := range tc.watching {
					if k.GVK.Kind == name {
						if err := r.Watches.Run(t.Context(), []kind.Served{k}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}

			got, watched, err := r.findGated(t.Context(), served, nil)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.gated, names(got)); diff != "" {
				t.Errorf("%s\ngated, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.watched, names(watched)); diff != "" {
				t.Errorf("%s\nwatched, -want, +got:\n%s", tc.reason, diff)
			}

			if r.composedKnown != tc.complete {
				t.Errorf("%s\nall is known: %v", tc.reason, r.composedKnown)
			}
		})
	}
}

// left is an XR whose revision does not run the function any more, as its condition does not say yet.
const (
	plain = `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositionRevision, metadata: {name: stores-2},
		spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: XStore}, pipeline: [{step: o, functionRef: {name: other}}]}}`
	left = `{apiVersion: shop.example.org/v1, kind: XStore, metadata: {name: left, uid: l},
		spec: {crossplane: {compositionRevisionRef: {name: stores-2}}},
		status: {conditions: [{type: Kausality, status: "True", reason: Allowed, message: "generation 1: settled"}]}}`
)

// TestAnXRIsReconciledOnceItsRevisionDoesNotRunTheFunction though nothing has changed of the XR itself.
func TestAnXRIsReconciledOnceItsRevisionDoesNotRunTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, served := gated(t, revisionThatRuns, plain, storeOfABucket, left)

		reconciled := make(chan string, 1)
		r.Watches.Object = func(schema.GroupVersionKind) reconcile.Reconciler {
			return reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
				reconciled <- req.Name

				return reconcile.Result{}, nil
			})
		}

		if err := r.Watches.Run(t.Context(), served[:2]); err != nil {
			t.Fatal(err)
		}

		synctest.Wait()

		if _, _, err := r.findGated(t.Context(), served, nil); err != nil {
			t.Fatal(err)
		}

		select {
		case name := <-reconciled:
			if name != "left" {
				t.Errorf("XR %q is reconciled, want the one that was left", name)
			}
		case <-time.After(time.Minute):
			t.Error("no XR is reconciled")
		}
	})
}

// TestAnXRThatChangesItsRevisionMeanwhileIsJudgedByWhatWasFound because it is either in the last list or changes after that.
func TestAnXRThatChangesItsRevisionMeanwhileIsJudgedByWhatWasFound(t *testing.T) {
	r, served := gated(t)
	xr := fixture.Parse(t, left)

	// Whether the XR would report that the function does not run, at each list of XRs.
	var reports []bool

	w := watching(t, &fixture.Cache{
		Objects: []unstructured.Unstructured{*fixture.Parse(t, revisionThatRuns), *fixture.Parse(t, plain), *xr},
		Listing: func(kind string) {
			if kind == xr.GetKind() {
				reports = append(reports, condition.NotRun(xr, r.Composed.Runs()) != "")
			}
		},
	}, r.Watches.Now)
	r.Watches, r.Composed.Watches = w, w

	if err := w.Run(t.Context(), served[:2]); err != nil {
		t.Fatal(err)
	}

	if _, _, err := r.findGated(t.Context(), served, nil); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]bool{false, true}, reports); diff != "" {
		t.Errorf("reports at each list of XRs, -want, +got:\n%s", diff)
	}
}

func TestTheConfigurationFollowsFromAllThatItIsPlannedFrom(t *testing.T) {
	r, _ := cluster(t, interceptor.Funcs{})
	r.Composed.Prompt = watch.NewPrompt()

	informers := &informertest.FakeInformers{Scheme: newScheme(t)}

	ctl, err := r.Controller(informers, logr.Discard())
	if err != nil || ctl == nil {
		t.Fatal(err)
	}

	// Policies, bindings, windows, Enforcements, CRDs; parts, two prompts, and the CA.
	if n := len(r.sources(informers)); n != 9 {
		t.Errorf("%d sources", n)
	}

	if got := kindsRequests(t); len(got) != 1 || got[0] != Kinds {
		t.Errorf("an event asks for %v", got)
	}

	before, after := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	after.SetResourceVersion("2")

	p := crdPredicate()
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) || p.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}) {
		t.Error("a CRD that is written passes, one that is listed anew does not")
	}
}

// kindsRequests is what an event asks for.
func kindsRequests(t *testing.T) []Request {
	t.Helper()

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	defer queue.ShutDown()

	kindsOf[client.Object]().Create(t.Context(), event.CreateEvent{Object: &extv1.CustomResourceDefinition{}}, queue)

	out := make([]Request, 0, 1)

	for queue.Len() > 0 {
		req, _ := queue.Get()
		out = append(out, req)
		queue.Done(req)
	}

	return out
}

// renewed is a CA that changes.
type renewed struct{ changed chan struct{} }

func (renewed) Bundle() []byte             { return nil }
func (r renewed) Changed() <-chan struct{} { return r.changed }

func TestANewCAHasTheWebhooksApplied(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	defer queue.ShutDown()

	ca := renewed{make(chan struct{})}
	if err := onNewCA(ca).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}

	ca.changed <- struct{}{}

	if req, _ := queue.Get(); req != Webhooks {
		t.Errorf("asks for %s", req)
	}
}
