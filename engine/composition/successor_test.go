// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/composition"
)

func TestWhatIsToStandForAnExternalObjectIsKnownBeforeThatIsDeleted(t *testing.T) {
	asking := func(group, name, policies string) *unstructured.Unstructured {
		return object(t, "{apiVersion: "+group+"/v1alpha1, kind: Object, metadata: {name: "+name+"}, spec: {forProvider: {manifest: "+
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}}, managementPolicies: "+policies+"}}")
	}
	of := func(group, name string) *unstructured.Unstructured { return asking(group, name, "['*']") }
	const cluster, namespaced = "kubernetes.crossplane.io", "kubernetes.m.crossplane.io"

	type state = map[string]*unstructured.Unstructured

	a, b, c := of(cluster, "a"), of(cluster, "b"), of(cluster, "c")

	for name, tc := range map[string]struct {
		reason            string
		observed, desired state
		want              map[string]string
	}{
		"Same":    {"Nothing goes.", state{"0": a, "1": b}, state{"0": a, "1": b}, nil},
		"Goes":    {"Nothing else stands for it.", state{"0": a, "1": b}, state{"0": a}, nil},
		"Shifts":  {"The first of three is taken out.", state{"0": a, "1": b, "2": c}, state{"0": b, "1": c}, map[string]string{"2": "1"}},
		"Renamed": {"It has another name in the Composition.", state{"old": a}, state{"new": a}, map[string]string{"old": "new"}},
		"Looks":   {"Another one only observes it.", state{"0": a}, state{"look": asking(cluster, "a", "[Observe]")}, nil},
		"Moves":   {"It comes into a namespace.", state{"0": a}, state{"0": of(namespaced, "a")}, map[string]string{"0": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, composition.Successors(tc.observed, tc.desired, nil)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestADeletionThatTakesFromASuccessorIsApprovedOrHeld(t *testing.T) {
	xr := allowing("delete", "Delete")

	for name, tc := range map[string]struct {
		reason, successor, observed string
		held                        bool
	}{
		"Alone":     {"Whoever may deletes it.", "", observedRDS, false},
		"Successor": {"Nobody said that this one's is to go.", "other", observedRDS, true},
		"Observes":  {"Nothing goes outside.", "other", edit(t, observedRDS, `"policies":["*"]`, `"policies":["Observe"]`), false},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestFor(t, xr, tc.observed, desiredRDS)
			req.Desired, req.Successor = nil, tc.successor
			out := composition.Decide(req)

			if held := len(out.Held) > 0; held != tc.held {
				t.Fatalf("%s\nheld: %v", tc.reason, out.Held)
			}

			if tc.held && !strings.Contains(out.Held[0].String(), `it would delete external object`) {
				t.Errorf("%s\nit says: %s", tc.reason, out.Held[0])
			}
		})
	}
}
