// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Parents maintains the annotations of parents that no request of
// anybody else's would.
type Parents struct {
	Writer object.Writer
	// Unused are grants to delete of which nobody makes use.
	Unused *Unused
}

func (p *Parents) reconcile(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	annotations := map[string]any{}
	for key, value := range stamp.Upkeep(u) {
		annotations[key] = value
	}

	over, again := p.Unused.check(u)
	maps.Copy(annotations, over)

	if len(annotations) > 0 {
		if _, err := p.Writer.Annotate(ctx, u, annotations); err != nil {
			return reconcile.Result{}, err
		}

		log.FromContext(ctx).V(1).Info("Kept up annotations", "annotations", len(annotations))
	}

	return reconcile.Result{RequeueAfter: again}, nil
}
