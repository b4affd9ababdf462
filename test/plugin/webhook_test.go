// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Webhooks of the configurations.
const (
	hookGoverned = "governed.kausality.io"
	hookEnforced = "databases.enforcement.kausality.io"
)

// configurations are both that the manager keeps.
func configurations() (mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) {
	meta := metav1.ObjectMeta{Name: "kausality"}

	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
}

// trusting has the API server trust a CA where it asks some webhooks.
func trusting(ctx context.Context, c client.Client, ca []byte, names ...string) error {
	mutating, validating := configurations()

	for _, obj := range []client.Object{mutating, validating} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
	}

	put := func(name string, to *admissionregistrationv1.WebhookClientConfig) {
		if slices.Contains(names, name) {
			to.CABundle = ca
		}
	}

	for i := range mutating.Webhooks {
		put(mutating.Webhooks[i].Name, &mutating.Webhooks[i].ClientConfig)
	}

	for i := range validating.Webhooks {
		put(validating.Webhooks[i].Name, &validating.Webhooks[i].ClientConfig)
	}

	for _, obj := range []client.Object{mutating, validating} {
		if err := c.Update(ctx, obj); err != nil {
			return err
		}
	}

	return nil
}

// unreached has the API server trust another CA for one webhook after the other.
// The manager puts that back once a minute.
func unreached(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()

	succeeds(ctx, t, "", "apply", "-f", "testdata/enforcement.yaml")
	found(ctx, t, "ok", "webhook-reach", "A dry-run request that webhook "+hookEnforced+" is asked about went through.")
	found(ctx, t, "ok", "webhook-reach", "A dry-run request that webhook "+hookGoverned+" is asked about went through.")

	_, validating := configurations()
	if err := c.Get(ctx, client.ObjectKeyFromObject(validating), validating); err != nil {
		t.Fatal(err)
	}

	right := validating.Webhooks[0].ClientConfig.CABundle

	for name, object := range map[string]string{
		hookGoverned: "MutatingWebhookConfiguration kausality", hookEnforced: "ValidatingWebhookConfiguration kausality",
	} {
		wrong := func(ctx context.Context) error { return trusting(ctx, c, running.Config().CAData, name) }
		bad := diagnosedWhile(ctx, t, wrong, "webhook-reach", "certificates")

		if want := fmt.Sprintf("webhook %s did not answer a dry-run request", name); bad[0].What != want || bad[0].Object != object {
			t.Errorf("%s is out of reach: %+v", name, bad)
		}

		if bad[1].Object != object || bad[1].What != "its CA bundle does not match the certificate in Secret kausality-system/kausality-webhook-cert" {
			t.Errorf("%s is not trusted: %+v", name, bad)
		}

		if err := trusting(ctx, c, right, name); err != nil {
			t.Fatal(err)
		}

		diagnosed(ctx, t)
	}

	succeeds(ctx, t, "", "delete", "-f", "testdata/enforcement.yaml")
	diagnosed(ctx, t)
}
