// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/internal/removal"
)

// object is a managed resource of version 7 with a closed gate, unless a merge of
// fields says otherwise.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.SetAPIVersion("sql.example.org/v1")
	u.SetKind("Database")
	u.SetName("db")
	u.SetResourceVersion("7")

	return u
}

const closedGate = `kausality.io/gate: '{v: 1, state: Closed, generation: 1, since: "2026-01-01T00:00:00Z"}'`

func TestPlanFor(t *testing.T) {
	gone := orphan.Gone(func(ref map[string]any) bool { return ref["name"] == "gone" })

	cases := map[string]struct {
		reason string
		object string
		opts   removal.Options
		want   removal.FinalState
		patch  string
		err    error
	}{
		"Open": {
			reason: "A managed resource is left as its Composition asks.",
			object: `{metadata: {finalizers: [a, kausality.io/deletion], annotations: {` + closedGate + `, kausality.io/desired-policies: '{"v":1,"policies":["Observe","Create","Update"]}'}},
spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts: removal.Options{Leave: removal.LeaveOpen}, want: removal.Opened,
			patch: `{metadata: {resourceVersion: "7", finalizers: [a]}, spec: {managementPolicies: [Observe, Create, Update]}}`,
		},
		"OpenAll": {
			reason: "Without a record it is the default of all providers.",
			object: `{metadata: {annotations: {` + closedGate + `}}, spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen, Forget: true}, want: removal.Opened,
			patch: `{metadata: {resourceVersion: "7", annotations: {kausality.io/gate: null}}, spec: {managementPolicies: ["*"]}}`,
		},
		"Paused": {
			reason: "What the Composition paused stays so.",
			object: `{metadata: {annotations: {` + closedGate + `, kausality.io/desired-policies: '{"v":1,"policies":[]}'}}, spec: {managementPolicies: [], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen}, want: removal.Opened,
		},
		"Closed": {
			reason: "A closed gate stays as it is.",
			object: `{metadata: {annotations: {` + closedGate + `}}, spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveClosed}, want: removal.Closed,
		},
		"CloseOpen": {
			reason: "An open one is closed.",
			object: `{metadata: {annotations: {` + closedGate + `}}, spec: {managementPolicies: [Observe, Update], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveClosed}, want: removal.Closed,
			patch: `{metadata: {resourceVersion: "7"}, spec: {managementPolicies: [Observe, LateInitialize]}}`,
		},
		"Alone": {
			reason: "The garbage collector would delete it, and an open gate the external object with it.",
			object: `{metadata: {ownerReferences: [{name: gone}, {name: there}], annotations: {` + closedGate + `}}, spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen, Gone: gone}, want: removal.Alone,
			patch: `{metadata: {resourceVersion: "7", ownerReferences: [{name: there}], annotations: {kausality.io/release: alone}}}`,
		},
		"StillAlone": {
			reason: "What one removal left closed, because nobody owns it, another does not open.",
			object: `{metadata: {annotations: {` + closedGate + `, kausality.io/release: alone}}, spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen, Gone: gone}, want: removal.Alone,
		},
		"Adopted": {
			reason: "Who has taken it since decides.",
			object: `{metadata: {ownerReferences: [{name: there}], annotations: {` + closedGate + `, kausality.io/release: alone}},
spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts: removal.Options{Leave: removal.LeaveOpen, Gone: gone}, want: removal.Opened,
			patch: `{metadata: {resourceVersion: "7"}, spec: {managementPolicies: ["*"]}}`,
		},
		"AloneForgotten": {
			reason: "Without annotations it is not governed any more, and not opened either.",
			object: `{metadata: {ownerReferences: [{name: gone}], annotations: {` + closedGate + `}}, spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen, Gone: gone, Forget: true}, want: removal.Alone,
			patch: `{metadata: {resourceVersion: "7", ownerReferences: [], annotations: {kausality.io/gate: null}}}`,
		},
		"ClosedForgotten": {
			reason: "What it takes to open it stays.",
			object: `{metadata: {annotations: {` + closedGate + `, kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/trace: "[]"}},
spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts: removal.Options{Leave: removal.LeaveClosed, Forget: true}, want: removal.Closed,
			patch: `{metadata: {resourceVersion: "7", annotations: {kausality.io/trace: null}}}`,
		},
		"Deleting": {
			reason: "No gate is opened for what goes: its external object would be deleted, though nobody allowed it.",
			object: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [p, kausality.io/deletion], annotations: {` + closedGate + `}},
spec: {managementPolicies: [Observe], forProvider: {}}}`,
			opts: removal.Options{Leave: removal.LeaveOpen}, want: removal.Deleting,
			patch: `{metadata: {resourceVersion: "7", finalizers: [p]}}`,
		},
		"Ungated": {
			reason: "Where there is no gate nothing is opened or closed.",
			object: `{metadata: {annotations: {kausality.io/gate: "v: 1\nstate: Ungated\n"}},
spec: {managementPolicies: ["*"], forProvider: {}}}`,
			opts: removal.Options{Leave: removal.LeaveClosed},
		},
		"Parent": {
			reason: "A parent loses what keeps it, and what people write stays.",
			object: `{metadata: {finalizers: [kausality.io/deletion], annotations: {a: b, kausality.io/trace: "[]"}}, spec: {}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen, Forget: true}, want: removal.Cleared,
			patch: `{metadata: {resourceVersion: "7", finalizers: [], annotations: {kausality.io/trace: null}}}`,
		},
		"DeletingParent": {
			reason: "What it owns does not know yet what that means for it.",
			object: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [kausality.io/deletion]}, spec: {}}`,
			opts:   removal.Options{Leave: removal.LeaveOpen}, err: removal.ErrDeleting,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := removal.PlanFor(object(t, tc.object), tc.opts)
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\nPlanFor: %v, want %v", tc.reason, err, tc.err)
			}

			if got.FinalState != tc.want {
				t.Errorf("%s\nPlanFor: outcome %q, want %q", tc.reason, got.FinalState, tc.want)
			}

			raw, err := yaml.Marshal(got.Patch)
			if err != nil {
				t.Fatal(err)
			}

			var patch, want map[string]any
			if err := errors.Join(yaml.Unmarshal(raw, &patch), yaml.Unmarshal([]byte(tc.patch), &want)); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, patch); diff != "" {
				t.Errorf("%s\nPlanFor: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWhatCrossplaneOpensAgainIsDistinguished(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, owners string
		want          bool
	}{
		"Given":    {asked: `["Observe","Create"]`, owners: "[{name: there}]", want: true},
		"Default":  {asked: `["*"]`, owners: "[{name: there}]"},
		"Observed": {asked: `["Observe"]`, owners: "[{name: there}]"},
		"Unowned":  {asked: `["Observe","Create"]`, owners: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			u := object(t, `{metadata: {ownerReferences: `+tc.owners+`, annotations: {`+closedGate+`, kausality.io/desired-policies: '{"v":1,"policies":`+tc.asked+`}'}},
spec: {managementPolicies: [Observe], forProvider: {}}}`)

			if got, err := removal.PlanFor(u, removal.Options{Leave: removal.LeaveClosed}); err != nil || got.Returns != tc.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestWhatToOpenIsRememberedThoughCrossplaneTakesItAway(t *testing.T) {
	before := object(t, `{metadata: {annotations: {`+closedGate+`, kausality.io/desired-policies: '{"v":1,"policies":["Observe","Create"]}', kausality.io/trace: "[]", a: b}},
spec: {managementPolicies: [Observe], forProvider: {}}}`)
	live := object(t, `{metadata: {annotations: {kausality.io/gate: "state: Closed"}}, spec: {managementPolicies: [Observe], forProvider: {}}}`)
	want := map[string]string{"kausality.io/gate": "state: Closed", "kausality.io/desired-policies": `{"v":1,"policies":["Observe","Create"]}`}

	if diff := cmp.Diff(want, removal.Remember(live, before).GetAnnotations()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if len(live.GetAnnotations()) != 1 {
		t.Errorf("what is live was changed: %v", live.GetAnnotations())
	}
}

func TestAnUnreadableRecordIsInTheWay(t *testing.T) {
	u := object(t, `{metadata: {annotations: {kausality.io/desired-policies: "{"}}, spec: {managementPolicies: [Observe], forProvider: {}}}`)
	if _, err := removal.PlanFor(u, removal.Options{Leave: removal.LeaveOpen}); err == nil {
		t.Error("it is opened")
	}
}
