// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package replicas_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestReplicasRotateCertificatesTogether makes requests, and reads what each
// replica serves, until CA and certificate have been replaced.
func TestReplicasRotateCertificatesTogether(t *testing.T) {
	world.Long(t)

	w := world.New(t, running)
	w.Namespace(t, "rotation")

	k, err := kubernetes.NewForConfig(running.Config())
	world.Must(t, err)

	// Nothing else is to depend on certificates that last for seconds.
	short := []string{"--webhook-ca-life=36s", "--webhook-cert-life=20s", "--webhook-ca-publish=8s", "--webhook-reload=1s"}
	anew := func(ctx context.Context, flags ...string) error {
		err := k.CoreV1().Secrets(stack.KausalityNamespace).Delete(ctx, "kausality-webhook-cert", metav1.DeleteOptions{})

		return errors.Join(err, running.Process("kausality-manager").Restart(ctx, flags...))
	}

	world.Must(t, anew(t.Context(), short...))

	other, err := running.StartManager(t.Context(), "kausality-manager-other", short...)
	world.Must(t, err)

	t.Cleanup(func() {
		if err := errors.Join(other.Stop(), anew(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})

	u := w.Database(t, "rotation", "db")
	bundles, serials, requests := map[string]bool{}, map[string]bool{}, 0

	for end := time.Now().Add(patience.Limit); (len(bundles) < 3 || len(serials) < 2) && time.Now().Before(end); requests++ {
		cfg, err := k.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "kausality", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		bundles[string(cfg.Webhooks[0].ClientConfig.CABundle)] = true

		for _, m := range []*stack.Manager{running.Manager(), other} {
			serial, err := served(t.Context(), m, cfg)
			if err != nil {
				t.Fatalf("after %d requests and %d bundles: %s: %v", requests, len(bundles), m.Name(), err)
			}

			serials[serial] = true
		}

		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"forProvider": {"size": "%d"}}}`, requests))
		if err := w.Hans.Patch(t.Context(), u.DeepCopy(), patch, client.DryRunAll); err != nil {
			t.Fatalf("after %d requests and %d bundles: %v", requests, len(bundles), err)
		}

		time.Sleep(20 * time.Millisecond)
	}

	if len(bundles) < 3 || len(serials) < 2 {
		t.Errorf("%d bundles, want 3: with the first CA, with the next one beside it, and with that first or alone; %d certificates", len(bundles), len(serials))
	}

	t.Logf("%d requests under %d bundles and %d certificates", requests, len(bundles), len(serials))
}

var errNoBundle = errors.New("the bundle has no certificate")

// served returns which certificate a replica serves, if the API server would take
// it.
func served(ctx context.Context, m *stack.Manager, cfg *admissionregistrationv1.MutatingWebhookConfiguration) (string, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cfg.Webhooks[0].ClientConfig.CABundle) {
		return "", errNoBundle
	}

	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", m.WebhookAddress)
	if err != nil {
		return "", err
	}

	defer func() { _ = conn.Close() }()

	secure, ok := conn.(*tls.Conn)
	if !ok {
		return "", world.ErrOther
	}

	return secure.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}
