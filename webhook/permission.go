// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
)

// How long an answer of the cluster's authorizer is remembered. One that grants nothing is
// asked again sooner: somebody may be waiting for a role.
const (
	grantedTTL = 10 * time.Second
	deniedTTL  = 2 * time.Second
)

// NewAuthorizer makes an authorizer that asks the cluster's, by a SubjectAccessReview, and
// remembers its answers for some seconds. It tries again for a second or so where the API
// server does not answer.
func NewAuthorizer(c authorizationv1.AuthorizationV1Interface) (authorizer.Authorizer, error) {
	const steps = 3

	return authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: c, AllowCacheTTL: grantedTTL, DenyCacheTTL: deniedTTL,
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: steps},
	}.New()
}

// authorize returns what asks the cluster's authorizer about the user of a request; nil
// where there is none.
func (j *Judge) authorize(ctx context.Context, ask *decision.Request) func(decision.Access) (bool, error) {
	if j.Authorizer == nil {
		return nil
	}

	who := &user.DefaultInfo{Name: ask.User.Name, UID: ask.User.UID, Groups: ask.User.Groups, Extra: ask.User.Extra}

	return func(a decision.Access) (bool, error) {
		got, _, err := j.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: a.Verb, Namespace: a.Namespace, Name: a.Name, ResourceRequest: true,
			APIGroup: ask.Resource.Group, APIVersion: "*", Resource: ask.Resource.Resource, Subresource: v1alpha1.SubresourceKausality,
		})

		return got == authorizer.DecisionAllow, err
	}
}
