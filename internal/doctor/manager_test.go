// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// The configuration that a manager keeps, as an earlier version wrote it and as
// this one does.
const (
	unsigned = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kausality}
webhooks: [{name: policies.kausality.io, clientConfig: {service: {namespace: team, name: asked, path: /validate}}}]`
	signed = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: kausality
  annotations:
    kausality.io/manager: "{version: v1.2.3, namespace: team, serviceAccount: signer, heartbeat: beat, leader: lead, secret: cert, maxOpen: 2h, withoutDrift: [Bucket.s3.aws.upbound.io]}"
webhooks: [{name: policies.kausality.io, clientConfig: {url: "https://192.0.2.1/validate"}}]`
	mountedSigned = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: kausality
  annotations:
    kausality.io/manager: "{version: v1.2.3, namespace: crossplane-system, heartbeat: kausality-io-provider-kausality, leader: lead, maxOpen: 1h}"
webhooks: [{name: policies.kausality.io, clientConfig: {url: "https://192.0.2.1/validate"}}]`
)

// Deployments that run managers.
const (
	charted = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kausality-manager, namespace: chart, labels: {app.kubernetes.io/name: kausality-manager}}
spec: {template: {spec: {
  containers: [{name: manager, image: "mirror.example.org/km:v1.1.0",
    args: [--leader-elect, --max-open=30m, --webhook-service=hook, --webhook-cert-dir=/etc/kausality/webhook],
    volumeMounts: [{name: webhook, mountPath: /etc/kausality/webhook}]}],
  volumes: [{name: webhook, secret: {secretName: from-cert-manager}}]}}}`
	manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: mine, namespace: plain}
spec: {template: {spec: {serviceAccountName: runner, containers: [{name: it, image: "example.org/kausality-manager@sha256:0123", args: [--webhook-secret, own]}]}}}`
	provided = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kausality-io-provider-kausality-0123, namespace: crossplane-system}
spec: {template: {metadata: {labels: {pkg.crossplane.io/provider: kausality-io-provider-kausality}}, spec: {
  containers: [{name: package-runtime, image: "xpkg.example.org/kausality-io/provider-kausality:v1.1.0",
    env: [{name: PROVIDER_NAME, valueFrom: {fieldRef: {fieldPath: "metadata.labels['pkg.crossplane.io/provider']"}}},
      {name: TLS_SERVER_CERTS_DIR, value: /tls/server}],
    volumeMounts: [{name: tls-server-certs, mountPath: /tls/server/}]}],
  volumes: [{name: tls-server-certs, secret: {secretName: kausality-io-provider-kausality-tls-server}}]}}}`
	others = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: z}
spec: {template: {spec: {containers: [{name: a, image: "a:v1"}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kausality-manager, namespace: z}
spec: {template: {spec: {containers: [{name: kausality-manager, image: "b:v1", args: [--no-enable-webhook]}]}}}`
)

func TestTheManagerIsFoundHoweverItWasInstalled(t *testing.T) {
	cases := map[string]struct {
		reason                    string
		configuration, deployment string
		want                      Manager
	}{
		"Nothing": {
			reason: "Where nothing tells of it all is as by default.", deployment: others,
			want: Manager{Namespace: "kausality-system", ServiceAccount: "kausality-manager", Heartbeat: "kausality-webhook", Leader: "kausality-manager", Secret: "kausality-webhook-cert"},
		},
		"Record": {
			reason: "What it says of itself goes before all else.", configuration: signed, deployment: charted,
			want: Manager{
				By: "ValidatingWebhookConfiguration kausality", Version: "v1.2.3", Namespace: "team", ServiceAccount: "signer",
				Heartbeat: "beat", Leader: "lead", Elected: true, Secret: "cert", MaxOpen: 2 * time.Hour, WithoutDrift: management.Kinds{{Group: "s3.aws.upbound.io", Kind: "Bucket"}},
			},
		},
		"RecordOfAProvider": {
			reason: "Where its certificate is mounted from the Deployment tells.", configuration: mountedSigned, deployment: provided,
			want: Manager{
				By: "ValidatingWebhookConfiguration kausality", Version: "v1.2.3", Namespace: "crossplane-system", ServiceAccount: "kausality-manager",
				Heartbeat: "kausality-io-provider-kausality", Leader: "lead", Elected: true, MaxOpen: time.Hour,
				Secret: "kausality-io-provider-kausality-tls-server", Mounted: true,
			},
		},
		"RecordAlone": {
			reason: "And without one nothing does.", configuration: mountedSigned,
			want: Manager{
				By: "ValidatingWebhookConfiguration kausality", Version: "v1.2.3", Namespace: "crossplane-system", ServiceAccount: "kausality-manager",
				Heartbeat: "kausality-io-provider-kausality", Leader: "lead", Elected: true, MaxOpen: time.Hour, Mounted: true,
			},
		},
		"Service": {
			reason: "An earlier version is found by the Service it has the API server ask.", configuration: unsigned,
			want: Manager{
				By: "ValidatingWebhookConfiguration kausality", Namespace: "team", ServiceAccount: "kausality-manager", Heartbeat: "kausality-webhook", Leader: "kausality-manager",
				Secret: "kausality-webhook-cert",
			},
		},
		"Chart": {
			reason: "One of the chart has its labels and flags.", deployment: charted,
			want: Manager{
				By: "Deployment chart/kausality-manager", Version: "v1.1.0", Namespace: "chart", ServiceAccount: "kausality-manager", Heartbeat: "kausality-webhook", Leader: "kausality-manager",
				Elected: true, Secret: "from-cert-manager", Mounted: true, MaxOpen: 30 * time.Minute,
			},
		},
		"Manifest": {
			reason: "Another one has its image.", deployment: manifest,
			want: Manager{
				By: "Deployment plain/mine", Version: "sha256:0123", Namespace: "plain", ServiceAccount: "runner", Heartbeat: "kausality-webhook",
				Leader: "kausality-manager", Secret: "own",
			},
		},
		"Provider": {
			reason: "That of a Provider has names that Crossplane gave.", deployment: provided,
			want: Manager{
				By: "Deployment crossplane-system/kausality-io-provider-kausality-0123", Version: "v1.1.0", Namespace: "crossplane-system", ServiceAccount: "kausality-manager",
				Heartbeat: "kausality-webhook", Leader: "kausality-manager", Elected: true,
				Secret: "kausality-io-provider-kausality-tls-server", Mounted: true,
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lists := map[Source]List{}

			if tc.configuration != "" {
				lists[Validating] = read(t, tc.configuration)
			}

			if tc.deployment != "" {
				lists[Deployments] = read(t, tc.deployment)
			}

			if diff := cmp.Diff(tc.want, FindManager(lists)); diff != "" {
				t.Errorf("%s\nFindManager: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
