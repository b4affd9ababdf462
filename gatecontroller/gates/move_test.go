// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/deletion"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// opened is a managed resource with more metadata that somebody has opened by hand: its gate is to be closed.
func opened(t *testing.T, metadata string) *unstructured.Unstructured {
	t.Helper()

	return fixture.Parse(t, "{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: x, namespace: a, uid: x, generation: 1"+metadata+
		", annotations: {kausality.io/gate: '{v: 1, state: Closed, generation: 1, since: \"2026-01-01T00:00:00Z\"}'}}, "+
		"spec: {forProvider: {size: large}, managementPolicies: ['*']}}")
}

// TestAMoveBlocksNoDeletionThatHasBegun because the API server would refuse the move as a whole.
//
// Source: k8s.io/apimachinery pkg/api/validation, ValidateNoNewFinalizers.
func TestAMoveBlocksNoDeletionThatHasBegun(t *testing.T) {
	const going = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: "

	cases := map[string]struct {
		reason, metadata string
		want             []string
	}{
		"Stays": {"What is not being deleted waits for us from now on.", ", finalizers: [other]", []string{v1alpha1.Finalizer}},
		"Waits": {"What waits for us goes on waiting.", going + "[other, " + v1alpha1.Finalizer + "]", []string{v1alpha1.Finalizer}},
		"Late":  {"What does not wait for us is not made to.", going + "[other]", nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c := governing(t, bucketKind, true, nil)

			var sent []client.Object

			r.Gates.Client = interceptor.NewClient(c, interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					u, _ := obj.(client.Object)
					sent = append(sent, u)

					return nil
				},
			})

			if _, err := r.Gates.Reconcile(t.Context(), opened(t, tc.metadata), true); err != nil || len(sent) != 1 {
				t.Fatalf("%s\n%d moves, %v", tc.reason, len(sent), err)
			}

			if diff := cmp.Diff(tc.want, sent[0].GetFinalizers()); diff != "" {
				t.Errorf("%s\nfinalizers of the move, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAMoveIsOfTheVersionThatItWasPlannedFor and is planned again for any other.
func TestAMoveIsOfTheVersionThatItWasPlannedFor(t *testing.T) {
	cases := map[string]struct {
		reason    string
		meanwhile func(client.Client, *unstructured.Unstructured) error
		outdated  bool
	}{
		"Same": {"Nobody has written it.", func(client.Client, *unstructured.Unstructured) error { return nil }, false},
		"Stamped": {"The webhook has stamped an allowance.", func(c client.Client, live *unstructured.Unstructured) error {
			live.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowances: "[]"})

			return c.Update(t.Context(), live)
		}, true},
		"Written": {"Another value is desired.", func(c client.Client, live *unstructured.Unstructured) error {
			resource.Map(live.Object, "spec", "forProvider")["size"] = "small"

			return c.Update(t.Context(), live)
		}, true},
		"Deleted": {"It is being deleted.", func(c client.Client, live *unstructured.Unstructured) error {
			return c.Delete(t.Context(), live)
		}, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, c := governing(t, bucketKind, true, nil)
			u := opened(t, ", finalizers: [other]")

			if err := c.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}

			if err := tc.meanwhile(c, u.DeepCopy()); err != nil {
				t.Fatal(err)
			}

			if _, err := r.Gates.Reconcile(t.Context(), u, true); object.Outdated(err) != tc.outdated || err != nil && !tc.outdated {
				t.Errorf("%s\n%v", tc.reason, err)
			}

			got := object.New(bucketKind)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), got); err != nil {
				t.Fatal(err)
			}

			policies := resource.Strings(got.Object, "spec", "managementPolicies")
			if stays := slices.Equal(policies, []string{"*"}); stays != tc.outdated {
				t.Errorf("%s\nmanagementPolicies %v", tc.reason, policies)
			}
		})
	}
}

// replaced is a managed resource that may have another external object made than it represented before.
const replaced = `
apiVersion: mr.example.org/v1
kind: Bucket
metadata:
  name: x
  namespace: a
  uid: x
  generation: 8
  annotations:
    kausality.io/desired-policies: '{"v":1,"policies":["*"]}'
    kausality.io/gate: '{v: 1, state: Closed, generation: 7, since: "2026-01-01T00:00:00Z", consumed: 3, identity: {config: red}}'
    kausality.io/allowances: '[{relation: External, mutations: [Create, Delete], generation: 8, initiator: hans, id: "8.0",
      source: {type: Policy}}]'
spec: {forProvider: {}, providerConfigRef: {name: blue}, managementPolicies: [Observe, LateInitialize]}
status:
  atProvider: {a: b}
  conditions:
  - {type: Synced, status: "True", observedGeneration: 8, lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Ready, status: "True"}
`

const record, move = "record", "move"

// recording has a Reconciler record what its moves leave behind, and returns the number of records at each move. The one that is named
// is refused.
func recording(t *testing.T, r *Reconciler, c client.WithWatch, refused *string) *[]int {
	t.Helper()

	moves := new([]int)
	refusing := interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if *refused == record {
				return fixture.ErrRefused
			}

			return c.Create(ctx, obj, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			records := &corev1.SecretList{}
			if err := c.List(ctx, records); err != nil {
				return err
			}

			*moves = append(*moves, len(records.Items))

			if *refused == move {
				return fixture.ErrRefused
			}

			return nil
		},
	})

	left, err := deletion.NewLeftovers(prometheus.NewRegistry(), refusing, c, "kausality-system", r.Gates.Opts, r.Gates.Now)
	if err != nil {
		t.Fatal(err)
	}

	r.Gates.Client, r.Gates.LeftBehind = refusing, left.Replaced

	return moves
}

// TestWhatAMoveLeavesBehindIsOnRecordBefore because nothing names that external object once the gate was open.
func TestWhatAMoveLeavesBehindIsOnRecordBefore(t *testing.T) {
	cases := map[string]struct {
		reason string
		// refuse is what is refused at each look, and want has the number of records at each move.
		refuse []string
		want   []int
	}{
		"Recorded":   {"The record comes first.", []string{""}, []int{1}},
		"Unrecorded": {"Without a record nothing is moved.", []string{record, ""}, []int{1}},
		"Stopped":    {"It is recorded once though we are stopped in between.", []string{move, ""}, []int{1, 1}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var refuse string

			r, c := governing(t, bucketKind, true, nil)
			moves := recording(t, r, c, &refuse)

			for _, refuse = range tc.refuse {
				_, err := r.Gates.Reconcile(t.Context(), fixture.Parse(t, replaced), true)
				if failed := errors.Is(err, fixture.ErrRefused); failed != (refuse != "") {
					t.Fatalf("%s\nrefused %q: %v", tc.reason, refuse, err)
				}
			}

			if diff := cmp.Diff(tc.want, *moves); diff != "" {
				t.Errorf("%s\nrecords at each move, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
