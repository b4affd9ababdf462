// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// provide does what a provider does with all there is.
func (w *World) provide(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		w.work(ctx)
	}
}

// Rest has the provider do nothing from here on, once it has ended what it is at; or go on.
func (w *World) Rest(rest bool) {
	w.round.Lock()
	defer w.round.Unlock()

	w.idle = rest
}

// work looks at all there is once.
func (w *World) work(ctx context.Context) {
	w.round.Lock()
	defer w.round.Unlock()

	if w.idle {
		return
	}

	for _, name := range []string{kindDatabase, kindRegion} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(Kind(name))

		if err := w.List(ctx, list); err != nil {
			continue // The next time.
		}

		for i := range list.Items {
			_ = w.sync(ctx, &list.Items[i]) // Somebody wrote meanwhile: the next time.
		}
	}
}

// sync does as the management policies of a resource say, and reports it. The
// external object is what the status has in atProvider.
func (w *World) sync(ctx context.Context, u *unstructured.Unstructured) error {
	status := resource.Map(u.Object, "status")
	synced, _ := resource.ConditionOf(u, resource.ConditionSynced)

	if synced.ObservedGeneration == u.GetGeneration() {
		return nil
	}

	external := status["atProvider"]
	if acting := management.Acting(resource.Strings(u.Object, "spec", "managementPolicies")); len(acting) > 0 {
		external = resource.Map(u.Object, "spec")["forProvider"]
	}

	now := time.Now().UTC().Format(time.RFC3339)

	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": u.GetResourceVersion()},
		"status": map[string]any{"atProvider": external, "conditions": []any{
			map[string]any{
				"type": "Synced", "status": "True", "reason": "ReconcileSuccess",
				"observedGeneration": u.GetGeneration(), "lastTransitionTime": now,
			},
			map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": now},
		}},
	})
	if err != nil {
		return err
	}

	return w.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, raw))
}
