// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
)

// Reviewer asks the cluster who may decide about changes that are held. The webhook asks it
// when a ChangeApproval is made, and the manager again when it is used.
type Reviewer struct {
	// Authorizer is the cluster's.
	Authorizer authorizer.UnconditionalAuthorizer
	// Mapper finds what kinds are called in requests.
	Mapper meta.RESTMapper
	// Approvers are the service accounts that may decide, as namespace:name.
	Approvers []string
}

// MayDecide reports whether an approver may decide about a change: see
// [approval.Asker.MayDecide]. It waits for the answer for two seconds at most.
func (r *Reviewer) MayDecide(
	ctx context.Context, approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange, rootNamespace string,
) (ok bool, reason string, err error) {
	return r.asker(limited(ctx)).MayDecide(approver, decision, entry, rootNamespace) //nolint:contextcheck // What is within is of the context.
}

// asker asks for one decision, for as long as that may wait.
func (r *Reviewer) asker(within limit) *approval.Asker {
	return &approval.Asker{
		Authorizer: authorizing(r.Authorizer, within), Approvers: r.Approvers,
		Resource: func(gvk schema.GroupVersionKind) (schema.GroupResource, error) {
			ctx, stop := within()
			defer stop()

			return r.resource(ctx, gvk.GroupKind())
		},
	}
}

// resource finds what a kind is called. A mapper that does not know it asks the API server,
// and takes no context.
func (r *Reviewer) resource(ctx context.Context, gk schema.GroupKind) (schema.GroupResource, error) {
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}

	answers := make(chan answer, 1)

	go func() {
		mapping, err := r.Mapper.RESTMapping(gk)
		answers <- answer{mapping, err}
	}()

	select {
	case <-ctx.Done():
		return schema.GroupResource{}, fmt.Errorf("the API server has not answered within %s: %w", waitFor, ctx.Err())
	case got := <-answers:
		if got.err != nil {
			return schema.GroupResource{}, got.err
		}

		return got.mapping.Resource.GroupResource(), nil
	}
}
