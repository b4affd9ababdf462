// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package governed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// Parents maintains the annotations of parents that no request of
// anybody else's would.
type Parents struct {
	Client client.Client
	// Unused are grants to delete of which nobody makes use.
	Unused *Unused
}

func (p *Parents) reconcile(ctx context.Context, u *unstructured.Unstructured) (reconcile.Result, error) {
	annotations := map[string]any{}
	for key, value := range decision.Upkeep(u) {
		annotations[key] = value
	}

	over, again := p.Unused.check(u)
	maps.Copy(annotations, over)

	return reconcile.Result{RequeueAfter: again}, p.write(ctx, u, annotations)
}

func (p *Parents) write(ctx context.Context, u *unstructured.Unstructured, annotations map[string]any) error {
	if len(annotations) == 0 {
		return nil
	}

	raw, err := json.Marshal(map[string]any{object.KeyMetadata: map[string]any{
		object.KeyVersion: u.GetResourceVersion(), object.KeyAnnotations: annotations,
	}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	patch := client.RawPatch(types.MergePatchType, raw)

	if decision.AnnotatedByStatus(u) {
		err = p.Client.Status().Patch(ctx, u.DeepCopy(), patch, client.FieldOwner(object.FieldManager))
	} else {
		err = p.Client.Patch(ctx, u.DeepCopy(), patch, client.FieldOwner(object.FieldManager))
	}

	if err != nil {
		return fmt.Errorf("cannot annotate %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	log.FromContext(ctx).V(1).Info("Kept up annotations", "annotations", len(annotations))

	return nil
}
