// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// How long an answer of the cluster's authorizer is remembered. One that grants nothing is
// asked again sooner: somebody may be waiting for a role.
const (
	grantedTTL = 10 * time.Second
	deniedTTL  = 2 * time.Second
	// usedTTL is for both where something is about to be used that somebody decided about:
	// that is rare, and a right that was taken away lets nothing more through.
	usedTTL = time.Second
)

// NewAuthorizer makes an authorizer that asks the cluster's, by a SubjectAccessReview, and
// remembers its answers for some seconds. It tries again for a second or so where the API
// server does not answer.
func NewAuthorizer(c authorizationv1.AuthorizationV1Interface) (authorizer.UnconditionalAuthorizer, error) {
	return newAuthorizer(c, grantedTTL, deniedTTL)
}

// NewPromptAuthorizer is as [NewAuthorizer], and remembers answers for a second alone.
func NewPromptAuthorizer(c authorizationv1.AuthorizationV1Interface) (authorizer.UnconditionalAuthorizer, error) {
	return newAuthorizer(c, usedTTL, usedTTL)
}

func newAuthorizer(c authorizationv1.AuthorizationV1Interface, granted, denied time.Duration) (authorizer.UnconditionalAuthorizer, error) {
	const steps = 3

	return authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: c, AllowCacheTTL: granted, DenyCacheTTL: denied,
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: steps},
	}.New()
}

// asking is the cluster's authorizer, for as long as one decision may wait; nil where there
// is none.
func (j *Judge) asking(within limit) authorizer.UnconditionalAuthorizer {
	return authorizing(j.Authorizer, within)
}

// authorizing is an authorizer that is asked for as long as one decision may wait; nil of none.
func authorizing(by authorizer.UnconditionalAuthorizer, within limit) authorizer.UnconditionalAuthorizer {
	if by == nil {
		return nil
	}

	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		ctx, stop := within()
		defer stop()

		got, why, err := by.Authorize(ctx, a) //nolint:contextcheck // It is that of the request; the engine has none.
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the API server has not answered within %s: %w", waitFor, ctx.Err())
		}

		return got, why, err
	})
}
