// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// complainEvery is how often a missing right is logged.
const complainEvery = 10 * time.Second

// errRights is why the manager is not ready.
var errRights = errors.New("the manager's rights are missing")

// right is one that the manager cannot do without, and that nobody gives it but
// who applies its roles: Crossplane gives a Provider access to its own CRDs, to
// Secrets, Events and Leases.
type right struct {
	verb, group, resource string
	// name of the object, where the role names it.
	name string
}

// rights are those that depend on what is switched on.
func (c *cli) rights() []right {
	const (
		admission = "admissionregistration.k8s.io"
		create    = "create"
		list      = "list"
	)

	out := []right{{list, "apiextensions.k8s.io", "customresourcedefinitions", ""}}

	if c.EnableWebhook {
		out = append(out, right{list, "", "namespaces", ""}, right{create, admission, "mutatingwebhookconfigurations", v1alpha1.NameWebhooks},
			right{create, admission, "validatingwebhookconfigurations", v1alpha1.NameWebhooks})
	}

	if c.EnableGates {
		out = append(out, right{create, admission, "validatingadmissionpolicies", v1alpha1.NameWriterGuard},
			right{create, admission, "validatingadmissionpolicybindings", v1alpha1.NameWriterGuard})
	}

	return out
}

// complain logs which right is missing until none is. The manager is not ready
// meanwhile, and goes on once it has them; caches that wait name no cause.
func (c *cli) complain(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme, log logr.Logger) {
	for {
		err := c.authorized(ctx, cfg, scheme)
		if err == nil {
			return
		}

		log.Error(err, "Not ready")

		select {
		case <-ctx.Done():
			return
		case <-time.After(complainEvery):
		}
	}
}

// authorized says which right is missing, if one is, and what helps. Where the API
// server cannot be asked it says nothing.
func (c *cli) authorized(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme) error {
	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}

	for _, r := range c.rights() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Name: r.name},
		}}

		if err := live.Create(ctx, review); err != nil {
			return nil //nolint:nilerr // Whoever may not ask, or has no API server yet, may have all rights.
		}

		if !review.Status.Allowed {
			return fmt.Errorf("cannot run as service account %q: it may not %s %s: %w; %s",
				c.Namespace+"/"+c.ServiceAccount, r.verb, qualified(r), errRights, remedy())
		}
	}

	return nil
}

func qualified(r right) string {
	if r.group == "" {
		return r.resource
	}

	return r.resource + "." + r.group
}

// remedy is what gives the manager its rights.
func remedy() string {
	if os.Getenv(envProvider) != "" {
		return "run kubectl apply --server-side --force-conflicts -f install.yaml, with the install.yaml of version " + version +
			": it has the manager's roles, and has Crossplane run it as the service account kausality-manager, to which they are bound"
	}

	return "apply the roles in package/rbac, or install the Helm chart with rbac.create"
}
