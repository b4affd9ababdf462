// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// flaky fails to read while it is down.
type flaky struct {
	client.Reader

	down bool
}

func (f *flaky) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if f.down {
		return fixture.ErrRefused
	}

	return f.Reader.Get(ctx, key, obj, opts...)
}

// TestTheOwnerOfAGatedResourceWaitsForParameters: what its deletion gives by a policy of
// which they cannot be read now would never be given.
func TestTheOwnerOfAGatedResourceWaitsForParameters(t *testing.T) {
	const (
		owned = ", namespace: a, annotations: {kausality.io/gate: '{v: 1, state: Closed}'}, " +
			"ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]"
		store = "{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s, generation: 2, " +
			"deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [other, " + v1alpha1.Finalizer + "], " +
			"annotations: {kausality.io/allowances: '[{apiGroup: mr.example.org, kind: Bucket, mutation: delete, generation: 2, initiator: hans, policy: p, id: \"2.0\", source: {type: Deletion, name: p}, " +
			"trace: [{kind: Store, name: s, generation: 2, field: delete}]}]'}}, " +
			"spec: {crossplane: {resourceRefs: [{apiVersion: mr.example.org/v1, kind: Bucket, name: b}]}}}"
	)

	for name, tc := range map[string]struct {
		reason string
		params []client.Object
		gives  bool
	}{
		"There":   {"Once they can be read it goes, and the child gets what that gives.", []client.Object{fixture.Parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: a}}")}, true},
		"Missing": {"One that is not there is not waited for.", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			parent, child := fixture.Parse(t, store), fixture.Parse(t, bucket(owned, "managementPolicies: [Observe, LateInitialize]"))
			o, c := owning(t, append(tc.params, parent, child)...)

			q := &v1alpha1.AllowancePolicy{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "q"}, q); err != nil {
				t.Fatal(err)
			}

			q.Spec.ParamKind, q.Spec.ParamRef = &v1alpha1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}, &v1alpha1.ParamRef{Name: "limits", Namespace: "a"}
			if err := c.Update(t.Context(), q); err != nil {
				t.Fatal(err)
			}

			m := meta.NewDefaultRESTMapper(nil)
			m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)

			now, reader, reg := time.Unix(0, 0), &flaky{Reader: c, down: true}, prometheus.NewRegistry()
			o.Judge.Parameters = parameter.NewReader(reader, m, nil, func() time.Time { return now })

			o.Failed = judging.NewExpressions()
			if err := reg.Register(o.Failed.Failed); err != nil {
				t.Fatal(err)
			}

			// 1. While they cannot be read, it waits, and nothing is written.
			if _, err := o.Release(t.Context(), parent); err == nil || !strings.Contains(err.Error(), `cannot judge the deletion of Bucket "b": policy "q": cannot read its parameters`) {
				t.Errorf("%s\n%v", tc.reason, err)
			}

			waits, given := found(t, c, parent, child)
			if !waits || given != "" {
				t.Errorf("%s\nit waits: %t, its child has %q", tc.reason, waits, given)
			}

			if diff := cmp.Diff([]string{"gate_expression_errors_total{AllowancePolicy,q} 1"}, fixture.Counted(t, reg)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			// 2. Then it goes.
			reader.down, now = false, now.Add(time.Minute)

			if _, err := o.Release(t.Context(), parent); err != nil {
				t.Fatal(err)
			}

			waits, given = found(t, c, parent, child)
			if waits || strings.Contains(given, "Delete") != tc.gives {
				t.Errorf("%s\nit waits: %t, its child has %q", tc.reason, waits, given)
			}
		})
	}
}

// found is whether a parent still waits for us, and what its child is given.
func found(t *testing.T, c client.Client, parent, child client.Object) (waits bool, allowances string) {
	t.Helper()

	p, u := object.New(parent.GetObjectKind().GroupVersionKind()), object.New(child.GetObjectKind().GroupVersionKind())

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(parent), p); err != nil {
		t.Fatal(err)
	}

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), u); err != nil {
		t.Fatal(err)
	}

	return object.HasFinalizer(p), u.GetAnnotations()[v1alpha1.AnnotationAllowances]
}
