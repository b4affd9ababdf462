// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// concurrency is how many roots are worked on at once.
const concurrency = 5

// Controller makes the controller of PendingChanges: each by its root.
func (r *Reconciler) Controller(c cache.Cache, log logr.Logger) (controller.TypedController[Root], error) {
	return object.NewController("pendingchange", r, controller.TypedOptions[Root]{
		MaxConcurrentReconciles: concurrency,
		LogConstructor: func(req *Root) logr.Logger {
			if req == nil {
				return log
			}

			return log.WithValues("kind", req.Kind, "group", req.Group, "namespace", req.Namespace, "name", req.Name)
		},
	}, r.sources(c)...)
}

// sources are what is heard of objects, PendingChanges that come or go, and ChangeApprovals.
func (r *Reconciler) sources(c cache.Cache) []source.TypedSource[Root] {
	byRoot := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, pch *v1alpha1.PendingChange) []Root {
		return []Root{pending.KeyOf(pch.Spec.ObjectRef)}
	})

	out := make([]source.TypedSource[Root], 0, 3) //nolint:mnd // These.
	out = append(out,
		r.index.source(),
		source.TypedKind(c, &v1alpha1.PendingChange{}, byRoot, predicate.TypedFuncs[*v1alpha1.PendingChange]{
			// Else it is what was just written; but as all are looked at again, now and then. What is refused
			// whoever refuses it writes.
			UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.PendingChange]) bool {
				return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() ||
					!equality.Semantic.DeepEqual(e.ObjectOld.Status.Refused, e.ObjectNew.Status.Refused)
			},
		}),
	)

	if r.Approvals == nil {
		return out
	}

	byChange := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, cha *v1alpha1.ChangeApproval) []Root {
		pch := &v1alpha1.PendingChange{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: cha.Namespace, Name: cha.Spec.PendingChange}, pch)
		if err != nil && !object.Outdated(err) { // Of which object it is never changes.
			return nil // It is looked at with the PendingChange, once that is there.
		}

		return []Root{pending.KeyOf(pch.Spec.ObjectRef)}
	})

	return append(out, source.TypedKind(c, &v1alpha1.ChangeApproval{}, byChange))
}
