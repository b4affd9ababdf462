// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// free returns an address that nothing listens at.
func free(t *testing.T) string {
	t.Helper()

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = l.Close() }()

	return l.Addr().String()
}

// listens checks that a program by itself listens at the ports that its pod has.
func listens(t *testing.T, path string, addresses ...string) {
	t.Helper()

	help, err := exec.CommandContext(t.Context(), path, "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}

	for _, a := range addresses {
		if !strings.Contains(string(help), `="`+a+`"`) {
			t.Errorf("%s does not listen at %s by default:\n%s", path, a, help)
		}
	}
}

// checkCall calls the function as Crossplane does.
func (l *life) checkCall(t *testing.T, revision *unstructured.Unstructured) {
	t.Helper()

	// The endpoint is a DNS name, and there is no DNS; the certificate is for that name.
	host, _, _ := strings.Cut(strings.TrimPrefix(resource.String(revision.Object, "status", "endpoint"), "dns:///"), ":")
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.net.dial(ctx, l.c, functionName) })

	conn, err := grpc.NewClient("passthrough:///"+host, dialer, grpc.WithTransportCredentials(credentials.NewTLS(l.c.crossplaneTLS(t, host))))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })

	health, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("Health %v: %v", health, err)
	}

	req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: "a"}}

	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(t.Context(), req)
	if err != nil || rsp.GetMeta().GetTag() != "a" {
		t.Errorf("Answer %v: %v", rsp, err)
	}
}

// crossplaneTLS is how Crossplane calls functions.
func (c *cluster) crossplaneTLS(t *testing.T, host string) *tls.Config {
	t.Helper()

	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: stack.CrossplaneNamespace, Name: "crossplane-tls-client"}, secret); err != nil {
		t.Fatal(err)
	}

	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("Crossplane has no CA")
	}

	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS13}
}

// enforces sees the manager do its work.
func (l *life) enforces(t *testing.T) {
	t.Helper()

	l.c.checkConfigurations(t)
	l.c.checkValidation(t)
	l.c.apply(t, read(t, "testdata/regions.yaml"))
	l.rights(t)
	l.c.checkGate(t)
}

// checkConfigurations checks that the API server is asked to come to the Service.
func (c *cluster) checkConfigurations(t *testing.T) {
	t.Helper()

	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}

	world.Eventually(t, "a webhook configuration", func(ctx context.Context) error {
		if err := c.List(ctx, list); err != nil {
			return err
		}

		if len(list.Items) == 0 {
			return world.ErrOther
		}

		return nil
	})

	for _, w := range list.Items[0].Webhooks {
		s := w.ClientConfig.Service
		if s == nil || s.Namespace != stack.CrossplaneNamespace || s.Name != providerName || *s.Port != 9443 ||
			len(w.ClientConfig.CABundle) == 0 {
			t.Errorf("%s is at %+v", w.Name, w.ClientConfig)
		}
	}
}

// checkValidation checks that the webhook, which knows what the schema does not,
// refuses a bad policy.
func (c *cluster) checkValidation(t *testing.T) {
	t.Helper()

	bad := prototype("kausality.io", "v1alpha1", "AllowancePolicy")
	bad.SetName("bad")
	bad.Object["spec"] = map[string]any{
		"match": map[string]any{"kind": "Probe", "fields": []any{"spec["}},
		"allow": []any{map[string]any{"kind": "Probe", "mutations": []any{"spec"}}},
	}

	world.Eventually(t, "a bad policy to be refused", func(ctx context.Context) error {
		if err := c.Create(ctx, bad.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("%v: %w", err, world.ErrOther) //nolint:errorlint // Maybe none.
		}

		return nil
	})
}

// checkGate checks that a policy works: a change that hans may make is recorded
// with him, and nobody moves the gate.
func (c *cluster) checkGate(t *testing.T) {
	t.Helper()

	p := prototype("kausality.io", "v1alpha1", "AllowancePolicy")
	p.SetName("region-size")
	c.condition(t, p, "Ready")

	config, err := running.ConfigFor("hans")
	hans := connect(t, config, err)

	var region *unstructured.Unstructured

	// The API server learns of webhook configurations with a delay.
	world.Eventually(t, "an allowance of hans", func(ctx context.Context) error {
		region = prototype("sql.example.org", "v1", "Region")
		region.SetGenerateName("region-")
		region.Object["spec"] = map[string]any{"forProvider": map[string]any{"size": "small"}}

		if err := hans.Create(ctx, region); err != nil {
			return err
		}

		if err := hans.Patch(ctx, region, world.Merge(`{"spec": {"forProvider": {"size": "large"}}}`)); err != nil {
			return err
		}

		if got := region.GetAnnotations()[v1alpha1.AnnotationAllowances]; !strings.Contains(got, "hans@example.com") {
			return fmt.Errorf("annotations %v: %w", region.GetAnnotations(), world.ErrOther)
		}

		return nil
	})

	refused := func(ctx context.Context, opts ...client.PatchOption) error {
		err := hans.Patch(ctx, region.DeepCopy(), world.Merge(`{"spec": {"managementPolicies": ["*"]}}`), opts...)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "only Kausality moves the gate") {
			return fmt.Errorf("a hand edit of the gate: %v: %w", err, world.ErrOther) //nolint:errorlint // It may be none.
		}

		return nil
	}

	// So it does of the guard, which from then on holds.
	world.Eventually(t, "a gate that hans cannot open by hand", func(ctx context.Context) error { return refused(ctx, client.DryRunAll) })

	if err := refused(t.Context()); err != nil {
		t.Error(err)
	}
}
