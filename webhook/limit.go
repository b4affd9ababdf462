// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kausality-io/kausality-crossplane/engine/expression"
)

// waitFor is how long one decision waits, in all, for what it has to ask the API server while
// it is made. That is less than the API server waits for the webhook where it goes on without
// an answer, four seconds: what stays without one is not granted, and that is said, where
// otherwise it would be stored as if nobody had to be asked.
const waitFor = 2 * time.Second

// limit gives contexts that end with a request, and once a decision has waited for as long as
// it may, from the first of them on.
type limit func() (context.Context, context.CancelFunc)

// limited limits how long one decision waits within a request.
func limited(ctx context.Context) limit {
	until := sync.OnceValue(func() time.Time { return time.Now().Add(waitFor) })

	return func() (context.Context, context.CancelFunc) { return context.WithDeadline(ctx, until()) }
}

// outside is what one decision asks the API server for while it is made: parameters of
// policies, and the cluster's authorizer. Either is nil where nobody can ask for it.
func (j *Judge) outside(ctx context.Context) (expression.Params, authorizer.UnconditionalAuthorizer) {
	within := limited(ctx)

	return j.finding(within), j.asking(within) //nolint:contextcheck // What is within is of the context.
}

// finding finds parameters of policies, for as long as one decision may wait; nil where nobody
// can.
func (j *Judge) finding(within limit) expression.Params {
	if j.Parameters == nil {
		return nil
	}

	return func(q expression.ParamQuery) (expression.ParamList, error) {
		ctx, stop := within()
		defer stop()

		return j.Parameters.Within(ctx)(q)
	}
}
