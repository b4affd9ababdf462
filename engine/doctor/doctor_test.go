// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// authority is a CA's certificate as a webhook configuration has it, until some
// time.
func authority(t *testing.T, until time.Time) string {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-365 * 24 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}

	raw, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

func read(t *testing.T, text string) List {
	t.Helper()

	var out List

	for doc := range strings.SplitSeq(text, "---\n") {
		u := &unstructured.Unstructured{}

		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err == nil {
			err = u.UnmarshalJSON(raw)
		}

		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}

		out.Items = append(out.Items, u)
	}

	return out
}

const crds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: allowancepolicies.kausality.io}
spec: {versions: [{name: v1alpha1, served: true}]}
status: {conditions: [{type: Established, status: "True"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: enforcements.kausality.io}
spec: {versions: [{name: v1alpha1, served: true}]}
status: {conditions: [{type: Established, status: "True"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: upgradeallowances.kausality.io}
spec: {versions: [{name: v1alpha1, served: true}]}
status: {conditions: [{type: Established, status: "True"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: compositions.apiextensions.crossplane.io}
spec: {versions: [{name: v1, served: true}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: instances.rds.example.org}
spec:
  group: rds.example.org
  names: {kind: Instance, plural: instances, categories: [managed]}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: {spec: {properties: {
    managementPolicies: {type: array}, forProvider: {type: object}}}}}}}]
`

// healthy is a cluster in which nothing is wrong.
func healthy(t *testing.T) *State {
	t.Helper()

	hooks := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kausality}
webhooks: [{name: policies.kausality.io, clientConfig: {caBundle: "` + authority(t, now.Add(365*24*time.Hour)) + `"}}]`
	guard := func(name string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\n" +
			"spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: [rds.example.org], resources: [instances]}]}}\n"
	}
	binding := func(name string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\n" +
			"spec: {policyName: " + name + ", validationActions: [Deny]}\n"
	}

	return &State{
		Now: now, Manager: FindManager(nil), Functions: []string{"function-kausality"}, MaxOpen: time.Hour,
		Probes: []Probe{{Ask: Ask{Webhook: policiesHook, Own: true}, Answered: true}, {Ask: Ask{Webhook: "watched.kausality.io"}}},
		Lists: map[Source]List{
			CRDs:          read(t, crds),
			Validating:    read(t, hooks),
			Mutating:      read(t, strings.ReplaceAll(hooks, "Validating", "Mutating")),
			Guards:        read(t, guard(writerGuard)+"---\n"+guard(deleteGuard)),
			GuardBindings: read(t, binding(writerGuard)+"---\n"+binding(deleteGuard)),
			Leases: read(t, `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: kausality-webhook, namespace: kausality-system}
spec: {renewTime: "2026-11-21T11:59:55.123456Z"}`),
			Functions: read(t, `
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: function-kausality}
status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}]}`),
			Compositions: read(t, `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: databases}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Database}
  pipeline: [{step: a, functionRef: {name: function-a}}, {step: k, functionRef: {name: function-kausality}}]`),
			Deployments: read(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: crossplane, namespace: crossplane-system, labels: {app: crossplane}}
spec: {template: {spec: {containers: [{name: crossplane, image: "registry.example.org:5000/crossplane:v2.1.3@sha256:00"}]}}}`),
			AllowancePolicies: read(t, `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: databases, generation: 2}
spec: {match: {kind: Database, apiGroup: example.org}, allow: [{kind: Instance, apiGroup: rds.example.org}]}
status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}`),
		},
		Managed: read(t, `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db
  annotations: {kausality.io/gate: "{state: Open, generation: 1, since: \"2026-11-21T11:30:00Z\"}"}
  ownerReferences: [{apiVersion: example.org/v1, kind: Database, name: mine, uid: u1, controller: true}]
spec: {managementPolicies: [Observe], forProvider: {}}
status: {conditions: [{type: Synced, status: "True", observedGeneration: 1}]}`).Items,
	}
}

// set sets a field of the named object of a source.
func set(t *testing.T, s *State, src Source, name string, value any, path ...string) {
	t.Helper()

	if err := unstructured.SetNestedField(s.Lists[src].find(name).Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// openedBy has a policy's allowance hold the gate open.
func openedBy(s *State, policy string) {
	s.Managed[0].SetAnnotations(map[string]string{"kausality.io/gate": `{state: Open, actions: [Update], generation: 1,
		since: "2026-11-21T11:30:00Z", allowances: [{relation: External, mutations: [Update], generation: 1, initiator: hans, policy: ` + policy + `}]}`})
}

// lead has somebody hold the leader's lease.
func lead(t *testing.T, s *State, who, renewed string) {
	t.Helper()

	l := s.Lists[Leases]
	l.Items = append(l.Items, read(t, `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: kausality-manager, namespace: kausality-system}
spec: {holderIdentity: "`+who+`", leaseDurationSeconds: 15, renewTime: "`+renewed+`"}`).Items...)
	s.Lists[Leases] = l
}

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
			want: []brief{{"crds", Error, "CustomResourceDefinition allowancepolicies.kausality.io", "it is not installed"}},
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
		"KindWithoutGuard": {
			reason: "A guard that leaves a gated kind out is named with it.",
			ill: func(t *testing.T, s *State) {
				t.Helper()
				set(t, s, Guards, deleteGuard, []any{}, "spec", "matchConstraints", "resourceRules")
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
				set(t, s, Validating, configuration, []any{map[string]any{
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
				set(t, s, Validating, configuration, []any{map[string]any{"name": "a", "clientConfig": map[string]any{
					"caBundle": ca, "service": map[string]any{"namespace": "a", "name": "b"},
				}}}, "webhooks")
				set(t, s, Mutating, configuration, []any{map[string]any{"name": "a", "clientConfig": map[string]any{"caBundle": ca}}}, "webhooks")

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
				set(t, s, Validating, configuration, []any{map[string]any{
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
	}

	for name, tc := range cases {
		t.Run(name, tc.diagnose)
	}
}
