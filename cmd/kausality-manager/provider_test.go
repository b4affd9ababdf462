// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"testing"

	"github.com/alecthomas/kong"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

func TestTheManagerTakesItsDefaultsFromWhatCrossplaneSetsForAProvider(t *testing.T) {
	dir := t.TempDir()
	type defaults struct {
		namespace, service, certificate string

		port    int32
		elected bool
	}

	cases := map[string]struct {
		reason string
		env    map[string]string
		args   []string
		want   defaults
	}{
		"none": {
			reason: "It runs by itself.",
			want:   defaults{namespace: "kausality-system", service: "kausality-webhook", port: 443},
		},
		"provider": {
			reason: "Crossplane runs it.",
			env:    map[string]string{"POD_NAMESPACE": "crossplane-system", "PROVIDER_NAME": "kausality", "TLS_SERVER_CERTS_DIR": dir},
			want:   defaults{namespace: "crossplane-system", service: "kausality", certificate: dir, port: 9443, elected: true},
		},
		"flags": {
			reason: "Flags go first.",
			env:    map[string]string{"PROVIDER_NAME": "kausality"},
			args:   []string{"--webhook-service=other", "--webhook-service-port=8443", "--namespace=here"},
			want:   defaults{namespace: "here", service: "other", port: 8443, elected: true},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"POD_NAMESPACE", envProvider, "TLS_SERVER_CERTS_DIR"} {
				t.Setenv(key, tc.env[key]) // Also puts back what is there.

				if _, ok := tc.env[key]; !ok {
					if err := os.Unsetenv(key); err != nil {
						t.Fatal(err)
					}
				}
			}

			got := &cli{}

			parser, err := kong.New(got, kong.Vars{"version": "test"})
			if err != nil {
				t.Fatal(err)
			}

			if _, err := parser.Parse(append(tc.args, "--service-account=manager")); err != nil {
				t.Fatal(err)
			}

			if err := got.adapt(t.Context(), &rest.Config{}, runtime.NewScheme()); err != nil {
				t.Fatal(err)
			}

			is := defaults{
				namespace: got.Namespace, service: got.WebhookService, certificate: got.WebhookCertDir,
				port: got.WebhookServicePort, elected: got.LeaderElect,
			}
			if is != tc.want {
				t.Errorf("%s\n%+v, want %+v", tc.reason, is, tc.want)
			}
		})
	}
}

func TestTheManagerRunsAsAServiceAccountOfItsNamespace(t *testing.T) {
	t.Parallel()

	for user, want := range map[string]string{
		"system:serviceaccount:crossplane-system:manager-1": "manager-1",
		"system:serviceaccount:other:manager":               "",
		"hans@example.com":                                  "",
	} {
		c := &cli{Namespace: "crossplane-system"}

		if err := c.accountOf(user); c.ServiceAccount != want || want == "" && !errors.Is(err, errNotServiceAccount) {
			t.Errorf("accountOf(%q) = %q, %v", user, c.ServiceAccount, err)
		}
	}
}
