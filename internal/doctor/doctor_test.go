// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// brief is a finding without why it matters and what helps.
type brief struct {
	check    string
	severity Severity
	object   string
	what     string
}

// ill is a cluster in which something is wrong.
type ill struct {
	reason string
	ill    func(*testing.T, *State)
	want   []brief
}

func (tc ill) diagnose(t *testing.T) {
	t.Helper()

	s := healthy(t)
	tc.ill(t, s)

	var got []brief

	worst := OK

	for _, f := range Diagnose(s) {
		if f.Severity == OK {
			continue
		}

		got = append(got, brief{f.Check, f.Severity, f.Object, f.What})
		worst = f.Severity

		if f.Why == "" || f.Remedy == "" {
			t.Errorf("%s\nDiagnose: no reason or remedy: %+v", tc.reason, f)
		}
	}

	if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(brief{})); diff != "" {
		t.Errorf("%s\nDiagnose: -want, +got:\n%s", tc.reason, diff)
	}

	if w := Worst(Diagnose(s)); w != worst {
		t.Errorf("%s\nWorst: %s, want %s", tc.reason, w, worst)
	}
}

func TestTheDoctorFindsExactlyWhatIsWrong(t *testing.T) {
	conditions := func(typ, status, message string) []any {
		return []any{map[string]any{"type": typ, "status": status, "message": message, "observedGeneration": int64(2)}}
	}

	cases := map[string]ill{
		"Healthy": {reason: "Where all is well nothing is found.", ill: func(*testing.T, *State) {}},
		"NoCRD": {
			reason: "A kind of ours that is missing is named.",
			ill: func(_ *testing.T, s *State) {
				l := s.Lists[CRDs]
				l.Items = l.Items[1:]
				s.Lists[CRDs] = l
			},
			want: []brief{{"crds", Error, "CustomResourceDefinition allowancebindings.kausality.io", "it is not installed"}},
		},
		"NoConfiguration": {
			reason: "A webhook configuration that is missing is named.",
			ill:    func(_ *testing.T, s *State) { s.Lists[Mutating] = List{} },
			want:   []brief{{"webhooks", Error, "MutatingWebhookConfiguration kausality", "it is missing"}},
		},
		"NoBinding": {
			reason: "A guard without a binding guards nothing.",
			ill: func(_ *testing.T, s *State) {
				l := s.Lists[GuardBindings]
				l.Items = l.Items[1:]
				s.Lists[GuardBindings] = l
			},
			want: []brief{{"guards", Error, "ValidatingAdmissionPolicyBinding kausality-gate-writer", "it is missing"}},
		},
		"ApprovalsUnguarded": {
			reason: "What approvers are shown, and who they are, is guarded.",
			ill: func(_ *testing.T, s *State) {
				bindings, guards := s.Lists[GuardBindings], s.Lists[Guards]
				bindings.Items, guards.Items = bindings.Items[:3], append(guards.Items[:2:2], guards.Items[3])
				s.Lists[GuardBindings], s.Lists[Guards] = bindings, guards
			},
			want: []brief{
				{"guards", Error, "ValidatingAdmissionPolicy kausality-approval", "it is missing"},
				{"guards", Error, "ValidatingAdmissionPolicyBinding kausality-pending", "it is missing"},
			},
		},
		"KindWithoutGuard": {
			reason: "A guard that leaves a gated kind out is named with it.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Guards, v1alpha1.NameDeleteGuard, []any{}, "spec", "matchConstraints", "resourceRules")
			},
			want: []brief{{"guards", Error, "ValidatingAdmissionPolicy kausality-gate-delete", "it does not cover Instance.rds.example.org"}},
		},
		"NoBeat": {
			reason: "A lease that nobody renews tells that no manager is at work.",
			ill:    func(_ *testing.T, s *State) { s.Now = s.Now.Add(time.Minute) },
			want: []brief{{
				"manager", Error, "Lease kausality-system/kausality-webhook",
				"no manager is at work: it was renewed at 2026-11-21T11:59:55Z last",
			}},
		},
		"Unreached": {
			reason: "A webhook that does not answer is found though its configuration exists.",
			ill: func(_ *testing.T, s *State) {
				s.Probes = []Probe{
					{Ask: Asks(s)[0]}, {Ask: Ask{Webhook: "governed.kausality.io", Configuration: "MutatingWebhookConfiguration kausality"}, Object: "a"},
				}
			},
			want: []brief{
				{
					"webhook-reach", Error, "ValidatingWebhookConfiguration kausality",
					"webhook policies.kausality.io did not answer a dry-run request",
				},
				{
					"webhook-reach", Error, "MutatingWebhookConfiguration kausality",
					"webhook governed.kausality.io did not answer a dry-run request",
				},
			},
		},
		"MayNotAsk": {
			reason: "Who may not ask is told so, and that is no error.",
			ill:    func(_ *testing.T, s *State) { s.Probes[0].Problem = "forbidden" },
			want:   []brief{{"webhook-reach", Warning, "", "cannot ask webhook policies.kausality.io: forbidden"}},
		},
		"MayNotRead": {
			reason: "What may not be read is said once for each check that needs it.",
			ill:    func(_ *testing.T, s *State) { s.Lists[Leases] = List{Problem: "leases is forbidden"} },
			want:   []brief{{"manager", Warning, "", "cannot look: leases is forbidden"}},
		},
		"CAEnded": {
			reason: "A CA that has ended is found.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Validating, v1alpha1.NameWebhooks, []any{map[string]any{
					"name": "a", "clientConfig": map[string]any{"caBundle": authority(t, now.Add(-time.Hour))},
				}}, "webhooks")
			},
			want: []brief{{"certificates", Error, "ValidatingWebhookConfiguration kausality", "the CA ended at 2026-11-21T11:00:00Z"}},
		},
		"CAMismatch": {
			reason: "A certificate that another CA signed is found.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				s.Lists[Secrets] = read(t, `
apiVersion: v1
kind: Secret
metadata: {name: kausality-webhook-cert, namespace: kausality-system}
data: {tls.crt: "`+authority(t, now.Add(365*24*time.Hour))+`"}`)
			},
			want: []brief{
				{
					"certificates", Error, "MutatingWebhookConfiguration kausality",
					"its CA bundle does not match the certificate in Secret kausality-system/kausality-webhook-cert",
				},
				{
					"certificates", Error, "ValidatingWebhookConfiguration kausality",
					"its CA bundle does not match the certificate in Secret kausality-system/kausality-webhook-cert",
				},
			},
		},
		"NotForTheService": {
			reason: "A certificate has to be for the Service that the API server asks.",
			ill: func(t *testing.T, s *State) {
				t.Helper()

				ca := authority(t, now.Add(365*24*time.Hour))
				set(t, s, Validating, v1alpha1.NameWebhooks, []any{map[string]any{"name": "a", "clientConfig": map[string]any{
					"caBundle": ca, "service": map[string]any{"namespace": "a", "name": "b"},
				}}}, "webhooks")
				set(t, s, Mutating, v1alpha1.NameWebhooks, []any{map[string]any{"name": "a", "clientConfig": map[string]any{"caBundle": ca}}}, "webhooks")

				s.Lists[Secrets] = read(t, `
apiVersion: v1
kind: Secret
metadata: {name: kausality-webhook-cert, namespace: kausality-system}
data: {tls.crt: "`+ca+`"}`)
			},
			want: []brief{{
				"certificates", Error, "ValidatingWebhookConfiguration kausality",
				"the certificate in Secret kausality-system/kausality-webhook-cert is not for b.a.svc, where it has the webhook asked",
			}},
		},
		"NoCertificate": {
			reason: "A bundle or a secret that holds something else is found.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Validating, v1alpha1.NameWebhooks, []any{map[string]any{
					"name": "a", "clientConfig": map[string]any{"caBundle": "eA=="},
				}}, "webhooks")

				s.Manager.Secret, s.Manager.Mounted = "mine", true
				s.Lists[Secrets] = read(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: mine}")
			},
			want: []brief{
				{"certificates", Error, "ValidatingWebhookConfiguration kausality", "its CA bundle holds no certificate"},
				{"certificates", Error, "Secret kausality-system/mine", "it holds no certificate"},
			},
		},
		"MissingSecret": {
			reason: "A Secret that the manager says it has, and that is not there, is named.",
			ill:    func(_ *testing.T, s *State) { s.Manager.By, s.Manager.Secret = "Deployment a/b", "mine" },
			want: []brief{{
				"certificates", Warning, "Secret kausality-system/mine", "it is missing, and should hold the webhook's certificate",
			}},
		},
		"NoFunction": {
			reason: "A function that is missing is named.",
			ill:    func(_ *testing.T, s *State) { s.Lists[Functions] = List{} },
			want:   []brief{{"function", Error, "Function function-kausality", "it is not installed"}},
		},
		"NotLast": {
			reason: "A step after the function's is named.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Compositions, "databases", []any{
					map[string]any{"step": "k", "functionRef": map[string]any{"name": "function-kausality"}}, map[string]any{"step": "late"},
				}, "spec", "pipeline")
			},
			want: []brief{{"compositions", Error, "Composition databases", `step "late" runs after the function`}},
		},
		"NotRun": {
			reason: "A Composition of a kind that a policy is about wants the function.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Compositions, "databases", []any{map[string]any{"step": "a"}}, "spec", "pipeline")
			},
			want: []brief{{
				"compositions", Warning, "Composition databases", "it does not run the function, though an AllowancePolicy is about its kind",
			}},
		},
		"OldCrossplane": {
			reason: "A version of Crossplane that is not supported is named.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Deployments, "crossplane", []any{map[string]any{"image": "crossplane:v1.19.2"}},
					"spec", "template", "spec", "containers")
			},
			want: []brief{{"crossplane", Error, "", "Crossplane v1.19.2 is not supported"}},
		},
		"OldProvider": {
			reason: "A provider that sets no observedGeneration is found by what it wrote.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				s.Managed[0].Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Synced", "status": "True"}}}
			},
			want: []brief{{
				"providers", Warning, "Instance.rds.example.org",
				"its provider sets no observedGeneration on condition Synced, so it was built on crossplane-runtime before 1.20",
			}},
		},
		"Ungateable": {
			reason: "A kind without management policies cannot be gated.",
			ill: func(_ *testing.T, s *State) {
				crd := s.Lists[CRDs].find("instances.rds.example.org")
				version := maps(crd.Object, "spec", "versions")[0]
				unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "managementPolicies")
			},
			want: []brief{{"kinds", Warning, "Instance.rds.example.org", "the kind has no spec.managementPolicies"}},
		},
		"InvalidPolicy": {
			reason: "A policy that is not in force is named with what the manager says.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, AllowancePolicies, "databases", conditions("Ready", "False", "spec.match: no"), "status", "conditions")
			},
			want: []brief{{"policies", Error, "AllowancePolicy databases", "it is not in force: : spec.match: no"}},
		},
		"Overdue": {
			reason: "A gate that is open for too long is named.",
			ill:    func(_ *testing.T, s *State) { s.MaxOpen = time.Minute },
			want:   []brief{{"gates", Error, "Instance db", "its gate is open since 2026-11-21T11:30:00Z: Synced=True "}},
		},
		"OverdueByPolicy": {
			reason: "What the policy that opened a gate says goes before the manager's flag.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				openedBy(s, "databases")
				set(t, s, AllowancePolicies, "databases", map[string]any{"maxOpen": "10m"}, "spec", "gate")
			},
			want: []brief{{"gates", Error, "Instance db", "its gate is open since 2026-11-21T11:30:00Z: Synced=True "}},
		},
		"NotOverdueByPolicy": {
			reason: "And a policy may give more time.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				openedBy(s, "databases")
				set(t, s, AllowancePolicies, "databases", map[string]any{"maxOpen": "2h"}, "spec", "gate")

				s.MaxOpen = time.Minute
			},
		},
		"NoLeader": {
			reason: "A leader that does not renew its lease leads no more, though others serve the webhook.",
			ill:    func(t *testing.T, s *State) { t.Helper(); lead(t, s, "a", "2026-11-21T11:59:20Z") },
			want: []brief{{
				"manager", Error, "Lease kausality-system/kausality-manager", "no leader renews it since 2026-11-21T11:59:20Z",
			}},
		},
		"LeaderInTime": {
			reason: "The others wait for as long as the lease says.",
			ill:    func(t *testing.T, s *State) { t.Helper(); lead(t, s, "a", "2026-11-21T11:59:40Z") },
		},
		"NobodyLeads": {
			reason: "A lease that was let go of has to be taken, if one has to lead.",
			ill: func(t *testing.T, s *State) {
				t.Helper()

				s.Manager.Elected = true

				lead(t, s, "", "2026-11-21T11:59:10Z")
			},
			want: []brief{{
				"manager", Error, "Lease kausality-system/kausality-manager", "nobody holds it since 2026-11-21T11:59:10Z",
			}},
		},
		"NeverLed": {
			reason: "So does one that was never there.",
			ill:    func(_ *testing.T, s *State) { s.Manager.Elected = true },
			want:   []brief{{"manager", Error, "Lease kausality-system/kausality-manager", "no manager has ever led"}},
		},
		"Ownerless": {
			reason: "A managed resource whose owner is gone was left behind.",
			ill:    func(_ *testing.T, s *State) { s.Gone = map[string]bool{"u1": true} },
			want:   []brief{{"left-behind", Warning, "Instance db", "its owner Database mine is gone"}},
		},
		"Waiting": {
			reason: "What is held for longer than a day should be decided about; what is over, or new, is left out.",
			ill: func(t *testing.T, s *State) {
				t.Helper()

				s.Lists[PendingChanges] = read(t, waitingFor("old", "2026-11-20T11:00:00Z", "")+"---\n"+waitingFor("new", "2026-11-20T13:00:00Z", "")+
					"---\n"+waitingFor("over", "2026-11-20T11:00:00Z", "finishedAt: '2026-11-20T12:00:00Z'"))
			},
			want: []brief{{"waiting", Warning, "Claim team/old", "2 changes are held below it, since 2026-11-20T11:00:00Z"}},
		},
		"WaitingForever": {
			reason: "One that does not say since when is held since it was made.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				s.Lists[PendingChanges] = read(t, waitingFor("old", "", ""))
			},
			want: []brief{{"waiting", Warning, "Claim team/old", "2 changes are held below it, since 2026-11-01T00:00:00Z"}},
		},
		"EndedWindow": {
			reason: "A window that has ended can go.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				s.Lists[UpgradeAllowances] = read(t, `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: w}
spec: {validUntil: "2026-11-20T00:00:00Z"}
status: {conditions: [{type: Ready, status: "True"}]}`)
			},
			want: []brief{{"windows", Warning, "UpgradeAllowance w", "it ended at 2026-11-20T00:00:00Z"}},
		},
		"SuspendedWindow": {
			reason: "A window that somebody suspended may have been forgotten.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				s.Lists[UpgradeAllowances] = read(t, `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: w}
spec: {suspend: true, validUntil: "2027-11-20T00:00:00Z"}
status: {conditions: [{type: Ready, status: "True"}]}`)
			},
			want: []brief{{"windows", Warning, "UpgradeAllowance w", "it is suspended"}},
		},
	}

	for name, tc := range cases {
		t.Run(name, tc.diagnose)
	}
}

// waitingFor is a PendingChange of a Claim, since some time, with more of a status.
func waitingFor(name, since, more string) string {
	return `
apiVersion: kausality.io/v1alpha1
kind: PendingChange
metadata: {name: ` + name + `, namespace: team, creationTimestamp: "2026-11-01T00:00:00Z"}
spec: {objectRef: {apiVersion: shop.example.org/v1, kind: Claim, namespace: team, name: ` + name + `}}
status:
  total: 2
  changes: [{cause: {since: "` + since + `"}}, {}]
  ` + more + "\n"
}
