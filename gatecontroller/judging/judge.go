// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package judging

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Judge judges requests by all that the webhook judges them by, but for the cluster's authorizer: a Permission grants nobody here.
type Judge struct {
	// Inputs are the policies, windows and Enforcements.
	Inputs *current.Inputs
	// Live reads what is not watched in full.
	Live   client.Reader
	Mapper meta.RESTMapper
	// Parameters reads those of policies.
	Parameters *parameter.Reader
	// Versions finds out in which ones resources are served.
	Versions *served.Versions
	// Settings name who is who, and now is the clock.
	Settings request.Settings
	Now      func() time.Time
}

// Decide decides about a request, of which it completes what there is to decide by. Where parameters of a
// policy cannot be read the error says so, beside what is decided without them.
func (j *Judge) Decide(ctx context.Context, req request.Request) (decision.Decision, error) {
	var err error
	if req.Basis, err = j.basis(ctx); err != nil {
		return decision.Decision{}, err
	}

	u := req.Old

	m, err := j.Mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		return decision.Decision{}, fmt.Errorf("cannot find the resource of kind %q: %w", u.GetKind(), err)
	}

	req.Resource = m.Resource.GroupResource()

	if req.AsksVersions() {
		req.Versions = j.Versions.Of(ctx, req.Resource)
	}

	if name := u.GetNamespace(); name != "" {
		namespace := object.New(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})

		switch err := j.Live.Get(ctx, client.ObjectKey{Name: name}, namespace); {
		case err == nil:
			req.Namespace = namespace
		case !apierrors.IsNotFound(err):
			return decision.Decision{}, fmt.Errorf("cannot get the namespace of %s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}

	out := decision.Decide(req)

	return out, policy.Unread(out.Problems...)
}

// basis is what requests are decided by. What does not compile is reported on
// itself.
func (j *Judge) basis(ctx context.Context) (request.Basis, error) {
	in, err := j.Inputs.Get(ctx)
	if err != nil {
		return request.Basis{}, err
	}

	out := in.Set.Basis(j.Settings, j.Now())
	out.Params = j.Parameters.Within(ctx)

	return out, nil
}
