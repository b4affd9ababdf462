// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Labels labels the objects of one kind.
type Labels struct {
	client client.Client
	kind   string
	// empty makes an object of the kind, labels returns those that one is to have.
	empty  func() client.Object
	labels func(client.Object) map[string]string
}

// LabelPolicies makes the Labels of AllowancePolicies. It reads from the cache.
func LabelPolicies(c client.Client) *Labels {
	return &Labels{
		client: c, kind: v1alpha1.KindPolicy, empty: func() client.Object { return &v1alpha1.AllowancePolicy{} },
		labels: func(obj client.Object) map[string]string {
			p, _ := obj.(*v1alpha1.AllowancePolicy)

			return policy.LabelsOfMatch(&p.Spec.Match)
		},
	}
}

// LabelWindows makes the Labels of UpgradeAllowances. It reads from the cache.
func LabelWindows(c client.Client) *Labels {
	return &Labels{
		client: c, kind: v1alpha1.KindUpgrade, empty: func() client.Object { return &v1alpha1.UpgradeAllowance{} },
		labels: func(obj client.Object) map[string]string {
			u, _ := obj.(*v1alpha1.UpgradeAllowance)

			return policy.LabelsOfServiceAccount(u.Spec.ServiceAccount)
		},
	}
}

// Controller makes the controller of the labels.
func (r *Labels) Controller(c cache.Cache, log logr.Logger) (controller.Controller, error) {
	changed := predicate.Or(object.SpecChanged(), predicate.LabelChangedPredicate{})

	return object.NewController("labels of "+strings.ToLower(r.kind), r, controller.Options{Logger: log},
		source.Kind(c, r.empty(), &handler.EnqueueRequestForObject{}, changed))
}

// Reconcile labels one object.
func (r *Labels) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.empty()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}

	have, want := obj.GetLabels(), r.labels(obj)

	out, _ := obj.DeepCopyObject().(client.Object)
	labels := map[string]string{}
	maps.Copy(labels, have)
	maps.DeleteFunc(labels, func(key, _ string) bool { return policy.SelectsByKind(key) })
	maps.Copy(labels, want)

	if maps.Equal(have, labels) {
		return reconcile.Result{}, nil
	}

	out.SetLabels(labels)

	err := r.client.Patch(ctx, out, object.MergeFrom(obj), client.FieldOwner(object.FieldManager))

	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot label %s %q: %w", r.kind, req.Name, err)
	}

	return reconcile.Result{}, nil
}
