// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// restarted is an XR of which a person has changed an annotation for the n-th time
// at its generation, whose function said something.
func restarted(n int, said string) string {
	trace := fmt.Sprintf("trace: [{kind: XDatabase, name: db, generation: 12, request: %d, field: metadata.annotations.restart}]", n)

	return fmt.Sprintf(`
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: db
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
    kausality.io/allowances: "[{kind: RDSInstance, mutation: spec.forProvider, generation: 12, id: '12.%d', initiator: anna, source: {type: Policy, field: metadata.annotations.restart}, %s}, {relation: External, mutations: [Update], generation: 12, id: '12.%d', initiator: anna, source: {type: Policy, field: metadata.annotations.restart}, %s}]"
    kausality.io/record: '{"v":1,"request":"12.%d"}'
    kausality.io/trace: "[{field: metadata.annotations.restart, generation: 12, initiator: anna, %s}]"
status: {conditions: [%s]}
`, n, trace, n, trace, n, trace, said)
}

func TestRequestsWithinAGenerationSettleOneByOne(t *testing.T) {
	desired := edit(t, desiredRDS, "instanceClass: small", "instanceClass: large")

	cases := map[string]struct {
		reason string
		xr     string
		held   []string
		// pending is whether the XR has to wait for the resource.
		pending bool
	}{
		"Asked": {
			reason: "What was asked for after the XR had settled is done, though the generation is the same.",
			xr:     restarted(1, fixture.State(v1alpha1.PhaseSettled, 12, 0)), pending: true,
		},
		"AskedAgain": {
			reason: "So is what was asked for after it had settled again.",
			xr:     restarted(2, fixture.State(v1alpha1.PhaseSettled, 12, 1)), pending: true,
		},
		"Settled": {
			reason: "What it has settled allows nothing more, and nothing waits for that.",
			xr:     restarted(2, fixture.State(v1alpha1.PhaseSettled, 12, 2)), held: []string{"spec.forProvider.instanceClass"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := composition.Decide(requestFor(t, tc.xr, observedRDS, desired))
			if got := fields(out.Held); !slices.Equal(got, tc.held) {
				t.Errorf("%s\nheld: %v, want %v", tc.reason, got, tc.held)
			}

			if (out.Pending != "") != tc.pending {
				t.Errorf("%s\npending: %q", tc.reason, out.Pending)
			}
		})
	}

	s := condition.Summarize(object(t, restarted(2, "")), condition.Findings{Ready: true, Composed: 1})
	if want := "generation 12: settled, request 2"; s.Message != want {
		t.Errorf("Summarize: %q, want %q", s.Message, want)
	}
}

// TestAResourceRestsOfWhichNothingIsToBeSaid sets each field of a result, also one that is new: it has to be among those
// that say something, or here.
func TestAResourceRestsOfWhichNothingIsToBeSaid(t *testing.T) {
	rests := composition.Result{Desired: &unstructured.Unstructured{}}
	silent := map[string]bool{"Desired": true, "Asked": true, "Enforcements": true}

	if !rests.Rests() {
		t.Error("what is applied as it is does not rest")
	}

	for i, field := range reflect.VisibleFields(reflect.TypeOf(rests)) {
		out := rests

		switch v := reflect.ValueOf(&out).Elem().Field(i); v.Kind() {
		case reflect.Bool:
			v.SetBool(true)
		case reflect.String:
			v.SetString("x")
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		default:
			t.Fatalf("%s: a field of kind %s", field.Name, v.Kind())
		}

		if out.Rests() != silent[field.Name] {
			t.Errorf("with %s it rests: %t", field.Name, out.Rests())
		}
	}

	if (composition.Result{}).Rests() {
		t.Error("what is left out rests")
	}
}
