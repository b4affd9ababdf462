// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachWayToAWebhookIsTriedOnce(t *testing.T) {
	s := &State{Lists: map[Source]List{
		Mutating: read(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kausality}
webhooks:
- {name: watched.kausality.io, failurePolicy: Ignore, clientConfig: {url: "https://192.0.2.1/mutate", caBundle: a}}
- name: governed.kausality.io
  failurePolicy: Fail
  clientConfig: {url: "https://192.0.2.1/mutate", caBundle: a}
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kausality-system]}]}
  rules: [{apiGroups: [rds.example.org], apiVersions: ["*"], resources: [instances], operations: [CREATE, UPDATE]},
    {apiGroups: [rds.example.org], apiVersions: ["*"], resources: [backups], operations: [DELETE]}]`),
		Validating: read(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kausality}
webhooks:
- {name: policies.kausality.io, failurePolicy: Ignore, clientConfig: {url: "https://192.0.2.1/validate", caBundle: a}}
- {name: open.enforcement.kausality.io, failurePolicy: Ignore, clientConfig: {url: "https://192.0.2.1/enforce", caBundle: a}}
- name: deny.enforcement.kausality.io
  failurePolicy: Fail
  clientConfig: {url: "https://192.0.2.1/enforce", caBundle: a}
  objectSelector: {matchLabels: {env: prod}}
  rules: [{apiGroups: [apps], apiVersions: ["*"], resources: [deployments], operations: [CREATE, UPDATE, DELETE]}]
- {name: other.enforcement.kausality.io, failurePolicy: Fail, clientConfig: {url: "https://192.0.2.1/enforce", caBundle: b}}
- {name: mute.enforcement.kausality.io, failurePolicy: Ignore, clientConfig: {url: "https://192.0.2.2/enforce", caBundle: b}}`),
	}}

	const mutating, validating = "MutatingWebhookConfiguration kausality", "ValidatingWebhookConfiguration kausality"

	want := []Ask{
		{Webhook: "policies.kausality.io", Configuration: validating, Own: true},
		{
			Webhook: "governed.kausality.io", Configuration: mutating, Labels: map[string]string{},
			Sources: []Source{{Group: "rds.example.org", Resource: "instances"}}, Except: []string{"kausality-system"},
		},
		{
			Webhook: "deny.enforcement.kausality.io", Configuration: validating, Labels: map[string]string{"env": "prod"},
			Sources: []Source{{Group: "apps", Resource: "deployments"}},
		},
		{Webhook: "other.enforcement.kausality.io", Configuration: validating, Labels: map[string]string{}},
	}

	got := Asks(s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("Asks: -want, +got:\n%s", diff)
	}

	for text, suits := range map[string]bool{
		"metadata: {name: a, namespace: b, labels: {env: prod}}":                              true,
		"metadata: {name: a, namespace: b}":                                                   false,
		"metadata: {name: a, labels: {env: prod}, deletionTimestamp: '2026-11-21T12:00:00Z'}": false,
		"metadata: {name: a, namespace: kausality-system, labels: {env: prod}}":               false,
	} {
		a := want[2]
		a.Except = want[1].Except

		if got := a.Suits(read(t, "apiVersion: v1\nkind: A\n"+text).Items[0]); got != suits {
			t.Errorf("Suits(%s): %t", text, got)
		}
	}
}

func TestWhatFailsOpenIsAskedWhereItChangesThings(t *testing.T) {
	s := &State{Lists: map[Source]List{Mutating: read(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kausality}
webhooks: [{name: watched.kausality.io, failurePolicy: Ignore, clientConfig: {url: "https://192.0.2.1/mutate", caBundle: a}}]`)}}

	want := Ask{Webhook: "watched.kausality.io", Configuration: "MutatingWebhookConfiguration kausality", Open: true, Labels: map[string]string{}}
	if diff := cmp.Diff(want, Asks(s)[1]); diff != "" {
		t.Errorf("Asks: -want, +got:\n%s", diff)
	}
}

func TestTheHostOfAURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://hook.example.org/mutate":      "hook.example.org",
		"https://hook.example.org:9443/mutate": "hook.example.org",
		"https://192.0.2.1:9443":               "192.0.2.1",
		"https://[2001:db8::1]:9443/a":         "[2001:db8::1]",
		"https://[2001:db8::1]/a:1":            "[2001:db8::1]",
		"":                                     "",
	} {
		if got := hostOf(url); got != want {
			t.Errorf("hostOf(%q): %q, want %q", url, got, want)
		}
	}
}
