// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"

	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

// reviewer asks who may approve what is held, when an approval is used.
func (c *cli) reviewer(mgr ctrl.Manager) (*webhook.Reviewer, error) {
	reviews, err := authorizationv1.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the cluster's authorizer: %w", err)
	}

	prompt, err := webhook.NewPromptAuthorizer(reviews)
	if err != nil {
		return nil, fmt.Errorf("cannot make an authorizer: %w", err)
	}

	return &webhook.Reviewer{Authorizer: prompt, Mapper: mgr.GetRESTMapper(), Approvers: c.Approvers}, nil
}

// approver is a service account as --approvers names one.
var approver = regexp.MustCompile(`^[^:/\s]+:[^:/\s]+$`)

// errNotAccount is why a value of --approvers is refused.
var errNotAccount = errors.New("a service account is named NAMESPACE:NAME")
