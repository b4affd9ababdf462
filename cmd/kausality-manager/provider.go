// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// envProvider is set by Crossplane where the manager is installed as a Provider:
// the name of its package, which its Service has too.
const envProvider = "PROVIDER_NAME"

// Ports of the webhook's Service: what most Services of webhooks have, and what
// Crossplane gives those of Providers.
const (
	servicePort         = 443
	providerServicePort = 9443
)

// errNotServiceAccount is why the manager does not run as somebody.
var errNotServiceAccount = errors.New("it is no service account; give --namespace and --service-account that of the manager")

// adapt fills in what depends on how the manager is installed. Crossplane runs a
// Provider without flags and, unless a DeploymentRuntimeConfig says otherwise,
// under a service account whose name is another one with every version. The old
// and the new version run at the same time for a while.
func (c *cli) adapt(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme) error {
	provided := os.Getenv(envProvider) != ""
	c.LeaderElect = c.LeaderElect || provided

	if c.WebhookServicePort == 0 {
		c.WebhookServicePort = servicePort
		if provided {
			c.WebhookServicePort = providerServicePort
		}
	}

	if c.ServiceAccount != "" {
		return nil
	}

	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}

	review := &authenticationv1.SelfSubjectReview{}
	if err := live.Create(ctx, review); err != nil {
		return fmt.Errorf("cannot ask who we are: %w", err)
	}

	return c.accountOf(review.Status.UserInfo.Username)
}

// accountOf takes the service account from a user name.
func (c *cli) accountOf(user string) error {
	namespace, account, err := serviceaccount.SplitUsername(user)
	if err != nil || namespace != c.Namespace {
		return fmt.Errorf("cannot run as %q in namespace %q: %w", user, c.Namespace, errNotServiceAccount)
	}

	c.ServiceAccount = account

	return nil
}
