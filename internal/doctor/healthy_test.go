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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
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
metadata: {name: allowancebindings.kausality.io}
spec: {versions: [{name: v1alpha1, served: true}]}
status: {conditions: [{type: Established, status: "True"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: allowancepolicies.kausality.io}
spec: {versions: [{name: v1alpha1, served: true}]}
status: {conditions: [{type: Established, status: "True"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: changeapprovals.kausality.io}
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
metadata: {name: pendingchanges.kausality.io}
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
	mutating := strings.NewReplacer("Validating", "Mutating", policiesHook, approvalsHook).Replace(hooks)
	guard := func(name string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\n" +
			"spec: {failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: [rds.example.org], resources: [instances]}]}}\n"
	}
	binding := func(name string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + name + "}\n" +
			"spec: {policyName: " + name + ", validationActions: [Deny]}\n"
	}

	each := func(text func(string) string) string {
		return text(v1alpha1.NameWriterGuard) + "---\n" + text(v1alpha1.NameDeleteGuard) + "---\n" +
			text(v1alpha1.NameApprovalGuard) + "---\n" + text(v1alpha1.NamePendingGuard)
	}

	return &State{
		Now: now, Manager: FindManager(nil), Functions: []string{"function-kausality"}, MaxOpen: time.Hour,
		Probes: []Probe{{Ask: Ask{Webhook: policiesHook, Own: true}, Answered: true}, {Ask: Ask{Webhook: "watched.kausality.io"}}},
		Lists: map[Source]List{
			CRDs:          read(t, crds),
			Validating:    read(t, hooks),
			Mutating:      read(t, mutating),
			Guards:        read(t, each(guard)),
			GuardBindings: read(t, each(binding)),
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
  annotations: {kausality.io/gate: "{v: 1, state: Open, generation: 1, since: \"2026-11-21T11:30:00Z\"}"}
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
	s.Managed[0].SetAnnotations(map[string]string{"kausality.io/gate": `{v: 1, state: Open, actions: [Update], generation: 1,
		since: "2026-11-21T11:30:00Z", allowances: [{relation: External, mutations: [Update], generation: 1, initiator: hans, policy: ` + policy + `, id: '1.0', source: {type: Policy, name: ` + policy + `}}]}`})
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
