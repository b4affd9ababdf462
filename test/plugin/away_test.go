// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// shortLived are certificates that end in seconds.
func shortLived() []string {
	return []string{"--webhook-reload=500ms", "--webhook-ca-publish=600ms", "--webhook-ca-life=6s", "--webhook-cert-life=3s"}
}

// kill ends the manager as a crash would, once the API server trusts a CA that ends
// soon when nobody replaces it.
func kill(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: stack.KausalityNamespace, Name: "kausality-webhook-cert"}}
	mutating, validating := configurations()

	if err := errors.Join(c.Delete(ctx, secret), c.Get(ctx, client.ObjectKeyFromObject(validating), validating)); err != nil {
		t.Fatal(err)
	}

	before := validating.Webhooks[0].ClientConfig.CABundle

	if err := running.Process(manager).Restart(ctx, shortLived()...); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "another CA", func(ctx context.Context) error {
		for _, obj := range []client.Object{mutating, validating} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
		}

		if bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, before) || bytes.Equal(validating.Webhooks[0].ClientConfig.CABundle, before) {
			return world.ErrOther
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if err := running.Process(manager).Kill(); err != nil {
		t.Fatal(err)
	}
}

// away kills the manager, and deletes what it keeps in place, and what that would
// have kept. It returns the name of the managed resource that went.
func away(ctx context.Context, t *testing.T, c client.Client) string {
	t.Helper()

	kill(ctx, t, c)

	// That nobody leads is known before it is that nobody serves.
	bad := diagnosed(ctx, t, "manager", "webhook-reach", "certificates")
	if f := bad[0]; f.Object != "Lease kausality-system/kausality-manager" || !strings.HasPrefix(f.What, "no leader renews it since ") {
		t.Errorf("leader: %+v", f)
	}

	// A certificate may end some seconds before the CA that signed it does.
	for object, what := range map[string]string{
		"Secret kausality-system/kausality-webhook-cert": "the certificate ended at ",
		"ValidatingWebhookConfiguration kausality":       "the CA ended at ",
		"MutatingWebhookConfiguration kausality":         "the CA ended at ",
	} {
		if err := scenario.Eventually(ctx, object+": "+what, func(ctx context.Context) error {
			_, all, err := doctor(ctx, t)
			if err != nil {
				return err
			}

			if !slices.ContainsFunc(all, func(f play.Finding) bool {
				return f.Check == "certificates" && f.Severity == "error" && f.Object == object && strings.HasPrefix(f.What, what)
			}) {
				return fmt.Errorf("%+v: %w", all, world.ErrOther)
			}

			return nil
		}); err != nil {
			t.Error(err)
		}
	}

	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "kausality-gate-delete"}}
	if err := c.Delete(ctx, binding); err != nil {
		t.Fatal(err)
	}

	if f := diagnosed(ctx, t, "guards", "manager", "webhook-reach", "certificates")[0]; f.Object != "ValidatingAdmissionPolicyBinding kausality-gate-delete" {
		t.Errorf("guard: %+v", f)
	}

	mutating, _ := configurations()
	if err := c.Delete(ctx, mutating); err != nil {
		t.Fatal(err)
	}

	if f := diagnosed(ctx, t, "webhooks", "guards", "manager", "webhook-reach", "certificates")[0]; f.Object != "MutatingWebhookConfiguration kausality" {
		t.Errorf("webhook: %+v", f)
	}

	// Nothing is left that keeps anybody from this.
	lost := managed(ctx, t)
	succeeds(ctx, t, "", "delete", "objects.kubernetes.crossplane.io/"+lost, "--wait=false")

	if f := found(ctx, t, "error", "manager", "no manager is at work: "); f.Object != "Lease kausality-system/kausality-webhook" {
		t.Errorf("manager: %+v", f)
	}

	return lost
}

// back has the manager return. What was lost meanwhile is known then, and is
// taken back.
func back(ctx context.Context, t *testing.T, lost string) {
	t.Helper()

	if err := running.Process(manager).Restart(ctx); err != nil {
		t.Fatal(err)
	}

	f := found(ctx, t, "warning", "left-behind", "it is the record of an external object whose managed resource is gone: Object "+lost)
	if !strings.HasPrefix(f.Object, "Secret kausality-system/") {
		t.Errorf("record: %+v", f)
	}

	diagnosed(ctx, t)
	succeeds(ctx, t, "", "kausality", "adopt", "objects.kubernetes.crossplane.io/"+lost)
	found(ctx, t, "ok", "left-behind", "No external object is recorded as orphaned.")
	diagnosed(ctx, t)
}
