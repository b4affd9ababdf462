// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
)

// list has a source hold what a text says.
func list(src Source, text string) func(*testing.T, *State) {
	return func(t *testing.T, s *State) {
		t.Helper()

		s.Lists[src] = read(t, text)
	}
}

// recordOf is the Secret of what is orphaned.
func recordOf(t *testing.T) func(*testing.T, *State) {
	t.Helper()

	u := read(t, `
apiVersion: rds.example.org/v1
kind: Instance
metadata: {name: db, annotations: {crossplane.io/external-name: db-7}}
spec: {forProvider: {}, managementPolicies: [Observe]}`).Items[0]

	data, err := orphan.NewRecord(u, now).Data()
	if err != nil {
		t.Fatal(err)
	}

	var text strings.Builder

	text.WriteString("apiVersion: v1\nkind: Secret\nmetadata: {name: left, namespace: kausality-system, labels: {" + orphan.Label + ": a}}\ndata:\n")

	for key, value := range data {
		text.WriteString("  " + key + ": " + base64.StdEncoding.EncodeToString(value) + "\n")
	}

	return list(Secrets, text.String())
}

func TestTheDoctorReadsWhatObjectsSay(t *testing.T) {
	cases := map[string]ill{
		"CAEndsSoon": {
			reason: "A CA that nothing replaces in time is warned of.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Validating, v1alpha1.NameWebhooks, []any{map[string]any{
					"name": "a", "clientConfig": map[string]any{"caBundle": authority(t, now.Add(time.Hour))},
				}}, "webhooks")
			},
			want: []brief{{"certificates", Warning, "ValidatingWebhookConfiguration kausality", "the CA ends at 2026-11-21T13:00:00Z"}},
		},
		"NoCA": {
			reason: "A webhook without a CA is trusted by chance.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Mutating, v1alpha1.NameWebhooks, []any{map[string]any{"name": "a", "clientConfig": map[string]any{}}}, "webhooks")
			},
			want: []brief{{"webhooks", Warning, "MutatingWebhookConfiguration kausality", "webhook a has no CA bundle"}},
		},
		"Record": {
			reason: "What a record is about is told.", ill: recordOf(t),
			want: []brief{{
				"left-behind", Warning, "Secret kausality-system/left",
				"it is the record of an external object whose managed resource is gone: Instance db, external name db-7",
			}},
		},
		"Deleting": {
			reason: "A managed resource that cannot go is told of.",
			ill: func(_ *testing.T, s *State) {
				s.Managed[0].SetDeletionTimestamp(new(metav1.NewTime(now.Add(-time.Hour))))
			},
			want: []brief{{"left-behind", Warning, "Instance db", "it is being deleted, and its gate is not open for Delete"}},
		},
		"Unknown": {
			reason: "So is a record of another version.",
			ill: func(_ *testing.T, s *State) {
				annotations := s.Managed[0].GetAnnotations()
				annotations["kausality.io/management-policies"] = "- '*'\n"
				s.Managed[0].SetAnnotations(annotations)
			},
			want: []brief{
				{"gates", Error, "Instance db", "cannot read annotation \"kausality.io/management-policies\": this version does not know it"},
			},
		},
		"FormerGate": {
			reason: "So is the record of a gate that says no version.",
			ill: func(_ *testing.T, s *State) {
				annotations := s.Managed[0].GetAnnotations()
				annotations["kausality.io/gate"] = "{state: Closed, generation: 2}"
				s.Managed[0].SetAnnotations(annotations)
			},
			want: []brief{{
				"gates", Error, "Instance db", "cannot parse annotation \"kausality.io/gate\": it is of a form that this version does not know",
			}},
		},
		"Former": {
			reason: "So is one of a form that is not read any more.",
			ill: func(_ *testing.T, s *State) {
				annotations := s.Managed[0].GetAnnotations()
				annotations["kausality.io/allowances"] = "[{relation: External, mutations: [Update], generation: 2, initiator: hans, policy: p}]"
				s.Managed[0].SetAnnotations(annotations)
			},
			want: []brief{{
				"gates", Error, "Instance db",
				"cannot parse annotation \"kausality.io/allowances\": [0]: source or id: it is of a form that this version does not know",
			}},
		},
		"BrokenGate": {
			reason: "A record that cannot be read is named.",
			ill: func(_ *testing.T, s *State) {
				s.Managed[0].SetAnnotations(map[string]string{"kausality.io/gate": "["})
				s.Unread = []string{"backups.rds.example.org: forbidden"}
			},
			want: []brief{
				{"gates", Warning, "", "cannot look at backups.rds.example.org: forbidden"},
				{"gates", Error, "Instance db", "cannot parse annotation \"kausality.io/gate\": error converting YAML to JSON: yaml: line 1: did not find expected node content"},
			},
		},
		"Conditions": {
			reason: "Conditions of an Enforcement that do not fit are told of, as expressions of policies are.",
			ill: list(Enforcements, `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: e, generation: 1}
spec: {}
status:
  observedGeneration: 1
  typeChecking: [{field: "spec.matchConditions[0].expression", warning: "a/v1, kind Database: 1:12: undefined field 'sizee'"}]
  conditions: [{type: Ready, status: "True"}]`),
			want: []brief{{
				"enforcements", Warning, "Enforcement e",
				"spec.matchConditions[0].expression: a/v1, kind Database: 1:12: undefined field 'sizee'",
			}},
		},
		"Exception": {
			reason: "An exception that ended can go; an Enforcement that nobody looked at is told of.",
			ill: list(Enforcements, `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: e, generation: 2}
spec: {exceptions: [{name: x, until: "2026-11-20T00:00:00Z"}, {name: y, until: "2026-11-30T00:00:00Z"}]}
status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}`),
			want: []brief{
				{"enforcements", Warning, "Enforcement e", "the manager has not looked at its present generation"},
				{"enforcements", Warning, "Enforcement e", "exception x ended at 2026-11-20T00:00:00Z"},
			},
		},
		"Broken": {
			reason: "An Enforcement that does not compile is told of.",
			ill: list(Enforcements, `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: e, generation: 2}
spec: {match: {resourceRules: []}, matchConditions: [{name: a, expression: "("}], validationActions: [Deny]}
status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: Invalid, message: m}]}`),
			want: []brief{{"enforcements", Error, "Enforcement e", "it is not in force: Invalid: m"}},
		},
		"ActiveForEver": {
			reason: "A window that has ended and says it has not tells that nobody keeps it.",
			ill: list(UpgradeAllowances, `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: w}
spec: {validUntil: "2026-11-20T00:00:00Z"}
status: {active: true, conditions: [{type: Ready, status: "True"}]}`),
			want: []brief{{"windows", Error, "UpgradeAllowance w", "it ended at 2026-11-20T00:00:00Z, and still says it is active"}},
		},
		"UnhealthyFunction": {
			reason: "A function that does not run is told of with what Crossplane says.",
			ill: list(Functions, `
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: function-kausality}
status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "False", reason: Un, message: gone}]}`),
			want: []brief{{"function", Error, "Function function-kausality", "it is not Healthy: Un gone"}},
		},
		"UnhealthyProvider": {
			reason: "So is a provider.",
			ill: list(Providers, `
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-a}
status: {conditions: [{type: Healthy, status: "False", reason: Un, message: gone}]}`),
			want: []brief{{"providers", Warning, "Provider provider-a", "it is not healthy: Un gone"}},
		},
		"NoCrossplane": {
			reason: "A cluster without Crossplane may be meant.",
			ill: func(_ *testing.T, s *State) {
				l := s.Lists[CRDs]
				l.Items = append(l.Items[:6:6], l.Items[7:]...)
				s.Lists[CRDs] = l
				s.Lists[Functions] = List{Absent: true}
			},
			want: []brief{
				{"function", Warning, "", "Crossplane's functions are not served"},
				{"crossplane", Warning, "", "Crossplane is not installed"},
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, tc.diagnose)
	}
}

func TestGatedKindsAreRead(t *testing.T) {
	want := []Source{{Group: "rds.example.org", Version: "v1", Resource: "instances"}}
	if diff := cmp.Diff(want, Gated(healthy(t))); diff != "" {
		t.Errorf("Gated: -want, +got:\n%s", diff)
	}
}
