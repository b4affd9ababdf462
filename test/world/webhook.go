// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rewrites starts a webhook that patches, with a JSON patch, what it is asked about, until the test ends: as those of registries and of
// service meshes do. The hook says what that is, and its name is that of the configuration, too.
func Rewrites(
	t *testing.T, c client.Client, hook admissionregistrationv1.MutatingWebhook, patch func(obj map[string]any) []map[string]any,
) {
	t.Helper()

	server := httptest.NewUnstartedServer(reviewer(patch))
	authority, certificate := serving(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)

	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: authority}
	hook.SideEffects = new(admissionregistrationv1.SideEffectClassNone)
	hook.AdmissionReviewVersions = []string{"v1"}

	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: hook.Name}, Webhooks: []admissionregistrationv1.MutatingWebhook{hook},
	}
	if err := c.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := c.Delete(t.Context(), config); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
}

// reviewer answers reviews with a patch.
func reviewer(patch func(obj map[string]any) []map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, obj := admissionv1.AdmissionReview{}, map[string]any{}

		err := json.NewDecoder(r.Body).Decode(&in)
		if err == nil {
			err = json.Unmarshal(in.Request.Object.Raw, &obj)
		}

		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}

		out := &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}

		if list := patch(obj); len(list) > 0 {
			out.Patch, err = json.Marshal(list)
			out.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}

		in.Response, in.Request = out, nil

		if err == nil {
			err = json.NewEncoder(w).Encode(in)
		}

		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}
	}
}

// serving makes a CA and a certificate for this machine.
func serving(t *testing.T) ([]byte, tls.Certificate) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rewriting"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}
