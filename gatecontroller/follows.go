// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// deletions judges deletions that follow from others, by all that the webhook
// judges them by.
type deletions struct {
	reader client.Reader
	// live reads what is not watched in full.
	live     client.Reader
	mapper   meta.RESTMapper
	compiled *inforce.Cache
	// settings name who is who, and now is the clock.
	settings decision.Settings
	now      func() time.Time
}

// decide judges the deletion of a child whose parent is being deleted, as the
// garbage collector's.
func (d *deletions) decide(ctx context.Context, child, parent *unstructured.Unstructured) (decision.Decision, error) {
	req := decision.Request{
		Operation: decision.OperationDelete, Old: child, Parent: parent,
		User: policy.User{Name: garbageCollector}, Settings: d.settings, Now: d.now(),
	}

	if err := d.inForce(ctx, &req); err != nil {
		return decision.Decision{}, err
	}

	m, err := d.mapper.RESTMapping(child.GroupVersionKind().GroupKind(), child.GroupVersionKind().Version)
	if err != nil {
		return decision.Decision{}, fmt.Errorf("cannot find the resource of kind %q: %w", child.GetKind(), err)
	}

	req.Resource = m.Resource.GroupResource()

	if name := child.GetNamespace(); name != "" {
		namespace := prototype(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})

		switch err := d.live.Get(ctx, client.ObjectKey{Name: name}, namespace); {
		case err == nil:
			req.Namespace = namespace
		case !apierrors.IsNotFound(err):
			return decision.Decision{}, fmt.Errorf("cannot get the namespace of %s %q: %w", child.GetKind(), child.GetName(), err)
		}
	}

	return decision.Decide(req), nil
}

// inForce has a request judged by what is in force. What does not compile is
// reported on itself.
func (d *deletions) inForce(ctx context.Context, req *decision.Request) error {
	policies := &v1alpha1.AllowancePolicyList{}
	windows := &v1alpha1.UpgradeAllowanceList{}
	enforcements := &v1alpha1.EnforcementList{}

	for _, list := range []client.ObjectList{policies, windows, enforcements} {
		if err := d.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("cannot list %T: %w", list, err)
		}
	}

	d.compiled.Set(policies.Items, windows.Items, enforcements.Items).Into(req)

	return nil
}
