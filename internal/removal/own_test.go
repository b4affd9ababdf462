// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/internal/removal"
)

func TestOwnCertificate(t *testing.T) {
	const data = `{ca.crt: "", ca.key: "", tls.crt: "", tls.key: ""}`

	cases := map[string]struct {
		reason string
		object string
		want   bool
	}{
		"Own":      {reason: "The manager made it.", object: `{metadata: {labels: {kausality.io/own: "true"}}, data: ` + data + `}`, want: true},
		"Rotating": {reason: "The next CA has a key, too.", object: `{data: {ca.key: "", next.key: "", tls.crt: ""}}`, want: true},
		"CertManager": {
			reason: "Its name is the same, and cert-manager does not take labels away.",
			object: `{metadata: {annotations: {cert-manager.io/certificate-name: kausality-webhook}}, data: ` + data + `}`,
		},
		"Applied": {
			reason: "Somebody keeps a copy.",
			object: `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: ` + data + `}`,
		},
		"Tool":    {reason: "A tool looks after it.", object: `{metadata: {labels: {app.kubernetes.io/managed-by: Helm}}, data: ` + data + `}`},
		"Owned":   {reason: "It goes with its owner.", object: `{metadata: {ownerReferences: [{name: a}]}, data: ` + data + `}`},
		"Foreign": {reason: "The manager has no CA of its own in it.", object: `{data: {ca.crt: "", tls.crt: "", tls.key: ""}}`},
		"Shared":  {reason: "There is more in it.", object: `{data: {ca.key: "", tls.crt: "", other: ""}}`},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := removal.OwnCertificate(object(t, tc.object)); got != tc.want {
				t.Errorf("%s\nOwnCertificate: %t", tc.reason, got)
			}
		})
	}
}
