// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// TestAnElementThatTakesAnothersPlaceIsApprovedWithIt has the port of a Service be another one: its key is the port, and both cannot
// have the name.
func TestAnElementThatTakesAnothersPlaceIsApprovedWithIt(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default, uid: u, resourceVersion: "1", generation: 1,
		managedFields: [{manager: MANAGER, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:ports":
			{"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:targetPort": {}}}}}}]},
		spec: {ports: [{name: http, port: 80, protocol: TCP, targetPort: 80}]}}`

	xr := edit(t, steadyXR, "ALLOWANCES", "[]")
	observed := edit(t, service, "MANAGER", managedfields.ManagerOf(object(t, xr)))
	desired := `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: http, port: 8080, targetPort: 80}]}}`

	held := composition.Decide(requestFor(t, xr, observed, desired)).Held
	if len(held) != 7 {
		t.Fatalf("held: %v", held)
	}

	approving := func(which func(condition.Held) bool) string {
		var list []string

		for i, h := range held {
			if which(h) {
				list = append(list, fmt.Sprintf("{kind: Service, mutation: %q, generation: 12, id: '12.0', initiator: anna, approval: a%d, digest: %q, source: {type: Approval, name: a}}",
					h.Change.Field, i, h.Change.Digest))
			}
		}

		return strings.Replace(steadyXR, "ALLOWANCES", "["+strings.Join(list, ", ")+"]", 1)
	}

	ports := func(out composition.Result) []any {
		list, _, err := unstructured.NestedSlice(out.Desired.Object, "spec", "ports")
		if err != nil {
			t.Fatal(err)
		}

		return list
	}

	for name, tc := range map[string]struct {
		reason string
		which  func(condition.Held) bool
		held   int
		port   int64
	}{
		"All":     {"It is another port.", func(condition.Held) bool { return true }, 0, 8080},
		"Added":   {"Two ports of one name the API server refuses.", func(h condition.Held) bool { return h.Change.From == "" }, 7, 80},
		"Removed": {"It has none at all then.", func(h condition.Held) bool { return h.Change.To == "" }, 7, 80},
		"A part":  {"Half a port is none.", func(h condition.Held) bool { return h.Change.Field == "spec.ports[0].name" }, 7, 80},
	} {
		t.Run(name, func(t *testing.T) {
			out := composition.Decide(requestFor(t, approving(tc.which), observed, desired))

			list := ports(out)
			if len(out.Held) != tc.held || len(list) != 1 || !strings.Contains(fmt.Sprint(list[0]), fmt.Sprintf("port:%d ", tc.port)) {
				t.Errorf("%s\nheld %v\nports %v", tc.reason, out.Held, list)
			}
		})
	}

	places := map[string]bool{}
	for _, h := range held {
		places[h.Change.Place] = true
	}

	if len(places) != len(held) {
		t.Errorf("%d changes at %d places: %v", len(held), len(places), held)
	}
}

// TestElementsThatChangePlacesAreNotUnstable has a list be stored in another order each time, as what others add to it does.
func TestElementsThatChangePlacesAreNotUnstable(t *testing.T) {
	entry := func(i int, place, digest string) condition.Held {
		return condition.Held{Resource: "Service s", Change: v1alpha1.HeldChange{
			Ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Service", Name: "s"}, ComposedResource: "service",
			Field: fmt.Sprintf("spec.ports[%d].targetPort", i), Place: place, Digest: digest,
		}}
	}

	xr := object(t, edit(t, steadyXR, "ALLOWANCES", "[]"))
	status := &condition.Status{Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: xr.GetGeneration()}}

	for i := range 2 * v1alpha1.MaxUnsteady {
		state := condition.List(xr, status, nil, []condition.Held{entry(i%2, "aa", "sha256:1"), entry(1-i%2, "bb", "sha256:2")}, nil, false)
		for _, e := range state.Changes {
			if e.Unstable || e.Digest == "" {
				t.Fatalf("run %d: %+v", i, e)
			}
		}

		if len(state.Unsteady) > 0 {
			t.Fatalf("run %d counts %v", i, state.Unsteady)
		}

		_ = unstructured.SetNestedSlice(xr.Object, []any{map[string]any{
			"type": v1alpha1.ConditionState, "status": "False", "reason": "Held", "message": resource.FormatState(state),
		}}, "status", "conditions")
	}
}
