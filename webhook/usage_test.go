// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// TestWhatAProviderNeedsStaysUntilItIsDone is about what shows that a managed resource uses a ProviderConfig.
func TestWhatAProviderNeedsStaysUntilItIsDone(t *testing.T) {
	const (
		owned = `metadata: {name: u, namespace: a, ownerReferences: [{apiVersion: aws.example.org/v1, kind: Bucket, name: b, uid: one, controller: true}]}`
		gated = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: one, finalizers: [finalizer.managedresource.crossplane.io],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}}, spec: {forProvider: {}}}`
		free  = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: one, finalizers: [finalizer.managedresource.crossplane.io]}, spec: {forProvider: {}}}`
		taken = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: one,
			finalizers: [finalizer.managedresource.crossplane.io, foregroundDeletion, kausality.io/deletion],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}}, spec: {forProvider: {}}}`
		waits = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: one, finalizers: [finalizer.managedresource.crossplane.io, foregroundDeletion],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}}, spec: {forProvider: {}}}`
		done = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: one, finalizers: [foregroundDeletion],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}}, spec: {forProvider: {}}}`
		anew = `{apiVersion: aws.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: two, finalizers: [finalizer.managedresource.crossplane.io],
			annotations: {kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}}, spec: {forProvider: {}}}`
	)

	failing := errors.New("no connection")

	for name, tc := range map[string]struct {
		reason, usage, owner string
		err                  error
		allowed              bool
	}{
		"Gated":     {reason: "Its provider needs it.", usage: owned, owner: gated},
		"Free":      {reason: "What has no gate is as without us.", usage: owned, owner: free, allowed: true},
		"Taken":     {reason: "The manager is to take over its deletion in the foreground.", usage: owned, owner: taken},
		"Waits":     {reason: "Its provider waits for the garbage collector.", usage: owned, owner: waits, allowed: true},
		"Done":      {reason: "The garbage collector waits for it, before it lets the managed resource go.", usage: owned, owner: done, allowed: true},
		"Gone":      {reason: "It is left behind.", usage: owned, allowed: true},
		"Anew":      {reason: "It is of one that was there before.", usage: owned, owner: anew, allowed: true},
		"Alone":     {reason: "It is of none.", usage: "metadata: {name: u}", owner: gated, allowed: true},
		"Forbidden": {reason: "The manager may not read what is not governed.", usage: owned, err: apierrors.NewForbidden(schema.GroupResource{}, "b", failing), allowed: true},
		"Unread":    {reason: "It is asked again.", usage: owned, err: failing},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			if tc.owner != "" {
				b = b.WithObjects(fixture.Parse(t, tc.owner))
			}

			c := interceptor.NewClient(b.Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.err != nil {
						return tc.err
					}

					return c.Get(ctx, key, o, opts...)
				},
			})

			raw, err := fixture.Parse(t, "{apiVersion: aws.example.org/v1, kind: ProviderConfigUsage, "+tc.usage+"}").MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}

			rsp := (&webhook.Usages{Live: c}).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: raw},
			}})
			if rsp.Allowed != tc.allowed {
				t.Errorf("%s\n%+v", tc.reason, rsp)
			}
		})
	}
}
