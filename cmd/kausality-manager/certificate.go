// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/webhook/certificate"
)

// certificates loads or makes the webhook's certificate; nil without webhook.
func (c *cli) certificates(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme) (certificate.Provider, error) {
	log := ctrl.Log.WithName("certificate")

	switch {
	case !c.EnableWebhook:
		return nil, nil //nolint:nilnil // No webhook, no certificate.
	case c.WebhookCertDir != "":
		return certificate.NewMounted(c.WebhookCertDir, log)
	}

	hosts := []string{c.WebhookService + "." + c.Namespace + ".svc"}

	if c.WebhookURL != "" {
		u, err := url.Parse(c.WebhookURL)
		if err != nil {
			return nil, fmt.Errorf("cannot read --webhook-url: %w", err)
		}

		hosts = append(hosts, u.Hostname())
	}

	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}

	return certificate.New(ctx, live, certificate.Options{
		Secret: client.ObjectKey{Namespace: c.Namespace, Name: c.WebhookSecret}, Hosts: hosts,
		Lifetimes: certificate.Lifetimes{
			Authority: c.WebhookCALife, Serving: c.WebhookCertLife, Publish: c.WebhookCAPublish, Reload: c.WebhookReload,
		},
		Log: log,
	})
}
