// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/internal/current"
	"github.com/kausality-io/kausality-crossplane/internal/parameter"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Deletions judges deletions that follow from others, by all that the webhook
// judges them by.
type Deletions struct {
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
	Settings decision.Settings
	Now      func() time.Time
}

// decide judges the deletion of a child whose parent is being deleted, as the
// garbage collector's. Where parameters of a policy cannot be read the error says so,
// beside what is decided without them: what is not passed on now never is.
func (d *Deletions) decide(ctx context.Context, child, parent *unstructured.Unstructured) (decision.Decision, error) {
	req := decision.Request{
		Operation: decision.OperationDelete, Old: child, Parent: parent,
		User: policy.User{Name: policy.GarbageCollector},
	}

	var err error
	if req.Basis, err = d.basis(ctx); err != nil {
		return decision.Decision{}, err
	}

	m, err := d.Mapper.RESTMapping(child.GroupVersionKind().GroupKind(), child.GroupVersionKind().Version)
	if err != nil {
		return decision.Decision{}, fmt.Errorf("cannot find the resource of kind %q: %w", child.GetKind(), err)
	}

	req.Resource = m.Resource.GroupResource()

	if req.AsksVersions() {
		req.Versions = d.Versions.Of(ctx, req.Resource)
	}

	if name := child.GetNamespace(); name != "" {
		namespace := object.New(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})

		switch err := d.Live.Get(ctx, client.ObjectKey{Name: name}, namespace); {
		case err == nil:
			req.Namespace = namespace
		case !apierrors.IsNotFound(err):
			return decision.Decision{}, fmt.Errorf("cannot get the namespace of %s %q: %w", child.GetKind(), child.GetName(), err)
		}
	}

	out := decision.Decide(req)
	if err := policy.Unread(out.Problems...); err != nil {
		return out, fmt.Errorf("cannot judge the deletion of %s %q: %w", child.GetKind(), child.GetName(), err)
	}

	return out, nil
}

// basis is what requests are decided by. What does not compile is reported on
// itself.
func (d *Deletions) basis(ctx context.Context) (decision.Basis, error) {
	in, err := d.Inputs.Get(ctx)
	if err != nil {
		return decision.Basis{}, err
	}

	out := in.Basis(d.Settings, d.Now())
	out.Params = d.Parameters.Within(ctx)

	return out, nil
}
