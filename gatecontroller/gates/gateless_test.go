// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/discovery"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAManagedResourceWithoutAGateBelowTheFunctionIsTold(t *testing.T) {
	const (
		xr = `{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s}, spec: {crossplane: {}},
			status: {conditions: [{type: Kausality, status: "True"}]}}`
		part = `{apiVersion: shop.example.org/v1, kind: Part, metadata: {name: p, namespace: a, uid: p,
			ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]}, spec: {crossplane: {}}}`
		of   = `{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: b OWNER}, spec: {forProvider: {}, managementPolicies: ['*']}}`
		by   = ", ownerReferences: [{apiVersion: shop.example.org/v1, kind: KIND, name: NAME, uid: NAME, controller: true}]"
		gate = `, annotations: {kausality.io/gate: '{"v":1,"state":"Closed","generation":1,"since":"2026-01-01T00:00:00Z"}'}`
	)

	below := func(kind, name string) string {
		return strings.Replace(of, " OWNER", strings.NewReplacer("KIND", kind, "NAME", name).Replace(by), 1)
	}

	for name, tc := range map[string]struct {
		reason, bucket, xr string
		told               string
	}{
		"Composed": {reason: "A step after ours made it.", bucket: below("Store", "s"), xr: xr, told: "Make it the last step"},
		"Nested":   {reason: "The inner Composition has no step of ours.", bucket: below("Part", "p"), xr: xr, told: "Store.shop.example.org/s -n a runs the function"},
		"NoField": {
			reason: "Nothing could be its gate.", bucket: strings.Replace(below("Store", "s"), ", managementPolicies: ['*']", "", 1), xr: xr,
			told: "mr.example.org/v1 of its kind has no spec.managementPolicies",
		},
		"Gated":  {reason: "It has a gate.", bucket: strings.Replace(below("Store", "s"), "uid: b", "uid: b"+gate, 1), xr: xr},
		"NotRun": {reason: "Nobody asked for gates.", bucket: below("Store", "s"), xr: strings.Replace(xr, "type: Kausality", "type: Ready", 1)},
		"Alone":  {reason: "Nothing composed it.", bucket: strings.Replace(of, " OWNER", "", 1), xr: xr},
		"Gone":   {reason: "What composed it is gone.", bucket: below("Store", "old"), xr: xr},
	} {
		t.Run(name, func(t *testing.T) {
			known := &discovery.Kinds{}
			known.Set(discovery.Findings{Complete: true}, nil, nil)

			now, recorder := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC), events.NewFakeRecorder(10)
			g := (&Gateless{
				Composed: known, Events: recorder, Now: func() time.Time { return now },
				Read: func(_ context.Context, ref v1alpha1.ObjectReference, _ bool) (*unstructured.Unstructured, error) {
					for _, text := range []string{tc.xr, part} {
						if u := fixture.Parse(t, text); u.GetUID() == ref.UID {
							return u, nil
						}
					}

					return nil, object.ErrGone
				},
			}).Init()

			var said []string

			for range 3 { // At first, when the function has had its time, and later.
				again, err := g.observe(t.Context(), fixture.Parse(t, tc.bucket))
				if err != nil {
					t.Fatal(err)
				}

				if len(said) == 0 && (again > 0) != (tc.told != "") && len(recorder.Events) == 0 {
					t.Errorf("%s\nlooks again after %s", tc.reason, again)
				}

				for len(recorder.Events) > 0 {
					said = append(said, <-recorder.Events)
				}

				now = now.Add(gatelessAfter)
			}

			if len(said) != min(1, len(tc.told)) || tc.told != "" && !strings.Contains(said[0], tc.told) {
				t.Errorf("%s\nsaid %q, want %q once", tc.reason, said, tc.told)
			}

			const metric = "kausality_resources_without_gate"
			if tc.told != "" && testutil.ToFloat64(g) != 1 {
				t.Errorf("%s\n%s is %v", tc.reason, metric, testutil.ToFloat64(g))
			}

			// The function composes it, or it is gone.
			if _, err := g.observe(t.Context(), fixture.Parse(t, strings.Replace(below("Store", "s"), "uid: b", "uid: b"+gate, 1))); err != nil {
				t.Fatal(err)
			}

			if got := testutil.CollectAndCount(g); got > 0 && testutil.ToFloat64(g) > 0 {
				t.Errorf("%s\n%s is %v when it has a gate", tc.reason, metric, testutil.ToFloat64(g))
			}
		})
	}
}

func TestWhatIsAboveAManagedResourceIsAskedAgainWhileItIsYoung(t *testing.T) {
	const (
		bucket = `{apiVersion: mr.example.org/v1, kind: Bucket, metadata: {name: b, namespace: a, uid: b, creationTimestamp: "2026-01-01T12:00:00Z",
			ownerReferences: [{apiVersion: shop.example.org/v1, kind: Store, name: s, uid: s, controller: true}]}, spec: {forProvider: {}, managementPolicies: ['*']}}`
		xr = `{apiVersion: shop.example.org/v1, kind: Store, metadata: {name: s, namespace: a, uid: s}, spec: {crossplane: {}}, status: {conditions: [{type: TYPE, status: "True"}]}}`
	)

	known := &discovery.Kinds{}
	born, recorder, typ := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC), events.NewFakeRecorder(10), "Ready"
	now := born

	g := (&Gateless{
		Composed: known, Events: recorder, Now: func() time.Time { return now },
		Read: func(context.Context, v1alpha1.ObjectReference, bool) (*unstructured.Unstructured, error) {
			return fixture.Parse(t, strings.Replace(xr, "TYPE", typ, 1)), nil
		},
	}).Init()

	for _, step := range []struct {
		reason   string
		at       time.Duration
		typ      string
		complete bool
		again    time.Duration
		told     int
	}{
		{reason: "Its XR has not been composed.", typ: "Ready", complete: true, again: gatelessAgain},
		{reason: "Its XR runs the function.", at: 20 * time.Second, typ: "Kausality", complete: true, again: 10 * time.Second},
		{reason: "The function has had its time.", at: 30 * time.Second, typ: "Kausality", complete: true, told: 1},
		{reason: "Not all is known, as after a start.", at: time.Hour, typ: "Ready", again: gatelessYoung},
		{reason: "Nobody asks for gates.", at: time.Hour, typ: "Ready", complete: true},
	} {
		now, typ = born.Add(step.at), step.typ
		known.Set(discovery.Findings{Complete: step.complete}, nil, nil)

		again, err := g.observe(t.Context(), fixture.Parse(t, bucket))
		if err != nil || again != step.again || len(recorder.Events) != step.told {
			t.Errorf("%s\nagain after %s, %d told; %v", step.reason, again, len(recorder.Events), err)
		}

		for len(recorder.Events) > 0 {
			<-recorder.Events
		}
	}
}
