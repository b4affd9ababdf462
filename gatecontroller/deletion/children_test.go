// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// forbidding is an API server that lets nobody read one kind.
type forbidding struct {
	client.Reader

	kind string
}

func (f forbidding) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind == f.kind {
		return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name, fixture.ErrBroken)
	}

	return f.Reader.Get(ctx, key, obj, opts...)
}

func TestWhatHasNoGateNeedNotBeReadToLetItsXRGo(t *testing.T) {
	xr := fixture.Parse(t, `
apiVersion: example.org/v1
kind: Store
metadata: {name: s, namespace: a, uid: u}
spec: {crossplane: {resourceRefs: [{apiVersion: v1, kind: ConfigMap, name: c}, {apiVersion: example.org/v1, kind: Bucket, name: b}]}}`)
	bucket := fixture.Parse(t, "{apiVersion: example.org/v1, kind: Bucket, metadata: {name: b, namespace: a}}")

	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "example.org", Version: "v1", Kind: "Bucket"}} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}

	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).WithObjects(bucket).Build()
	for name, tc := range map[string]struct {
		reason, unreadable string
		ungoverned, fails  bool
	}{
		"NoGate": {reason: "Nothing is passed on to it.", unreadable: "ConfigMap", ungoverned: true},
		"Gate":   {reason: "What may have a gate may have to know.", unreadable: "Bucket", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Owners{Client: c, Live: forbidding{Reader: c, kind: tc.unreadable}, Ungoverned: func(schema.GroupKind) bool { return tc.ungoverned }}

			children, err := o.children(t.Context(), xr)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\nerror: %v", tc.reason, err)
			}

			if !tc.fails && (len(children) != 1 || children[0].GetName() != "b") {
				t.Errorf("%s\nchildren: %v", tc.reason, children)
			}
		})
	}
}
