// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

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
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mirror is where the webhook has images come from.
const mirror = "mirror.example.org/"

// rewriting starts a webhook that rewrites what is written in namespaces with
// the label rewrite, as those of registries and of service meshes do.
func rewriting(t *testing.T, c client.Client) {
	t.Helper()

	server := httptest.NewUnstartedServer(http.HandlerFunc(review))
	authority, certificate := serving(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)

	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "rewriting"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "rewriting.example.org",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: authority},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"rewrite": "all"}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: new(admissionregistrationv1.NamespacedScope),
				},
			}},
		}},
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

// review answers with a patch that replaces what is rewritten.
func review(w http.ResponseWriter, r *http.Request) {
	in := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	obj := map[string]any{}
	if err := json.Unmarshal(in.Request.Object.Raw, &obj); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	out := &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}

	var patch []map[string]any

	for key, v := range gated(obj) {
		if now := rewritten(obj, key, runtime.DeepCopyJSONValue(v)); !reflect.DeepEqual(v, now) {
			patch = append(patch, map[string]any{"op": "replace", "path": "/" + key, "value": now})
		}
	}

	if len(patch) > 0 {
		raw, err := json.Marshal(patch)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		out.Patch, out.PatchType = raw, new(admissionv1.PatchTypeJSONPatch)
	}

	in.Response, in.Request = out, nil
	if err := json.NewEncoder(w).Encode(in); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// rewritten is a field as the webhook wants it. Asked again, it changes nothing.
func rewritten(obj map[string]any, key string, v any) any {
	switch obj["kind"] {
	case "ConfigMap":
		if data, ok := v.(map[string]any); ok && key == "data" {
			for k, e := range data {
				data[k] = strings.ToUpper(asText(e))
			}

			data["added"] = "BY THE WEBHOOK"
		}
	case "Gadget":
		if spec, ok := v.(map[string]any); ok && spec["size"] != nil {
			spec["size"] = strings.ToUpper(asText(spec["size"]))
		}
	default:
		rewriteContainers(v)
	}

	return v
}

// rewriteContainers has images come from a mirror, and adds a container and an
// environment variable, wherever containers are.
func rewriteContainers(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}

	if list, ok := m["containers"].([]any); ok {
		injected := false

		for _, e := range list {
			container := asMap(e)
			if image, ok := container["image"].(string); ok && !strings.HasPrefix(image, mirror) {
				container["image"] = mirror + image
			}

			injected = injected || container["name"] == "injected"
		}

		if !injected {
			m["containers"] = append(list, map[string]any{"name": "injected", "image": mirror + "proxy"})
		}

		return
	}

	for _, e := range m {
		rewriteContainers(e)
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
