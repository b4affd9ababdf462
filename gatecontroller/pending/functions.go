// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// functionsFor is how long FunctionRevisions that were read count: after an update of a function something
// may be held of thousands of XRs at once.
const functionsFor = time.Second

// functions are the FunctionRevisions that were read last.
type functions struct {
	mu   sync.Mutex
	read time.Time
	list []unstructured.Unstructured
}

// hint adds to what a status lists for the first time, and only a pipeline explains, which of its
// functions were updated lately. What cannot be read is left out: it is a hint.
func (r *Reconciler) hint(ctx context.Context, objects []pending.Object, previous, status *v1alpha1.PendingChangeStatus) {
	for ref, places := range pending.Unexplained(status, previous) {
		names, err := r.updates(ctx, objects, ref)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Cannot say which functions were updated", "error", err.Error())

			return
		}

		for _, i := range places {
			status.Changes[i].Cause.Functions = names
		}
	}
}

// updates are those of functions of an XR's pipeline.
func (r *Reconciler) updates(ctx context.Context, objects []pending.Object, ref v1alpha1.ObjectReference) ([]string, error) {
	for i := range objects {
		if objects[i].GetUID() != ref.UID {
			continue
		}

		name := resource.RevisionOf(objects[i].Unstructured)
		if name == "" {
			return nil, nil
		}

		kind := resource.RevisionKind()

		revision, err := r.Objects.read(ctx, resource.Reference{APIVersion: kind.Group + "/v1", Kind: kind.Kind, Name: name}, true)
		if err != nil {
			return nil, fmt.Errorf("CompositionRevision %q: %w", name, err)
		}

		list, err := r.functionRevisions(ctx)
		if err != nil {
			return nil, err
		}

		return pending.Updates(list, resource.FunctionsOf(revision), r.Now()), nil
	}

	return nil, nil
}

// functionRevisions are those that were there a second ago, or are now.
func (r *Reconciler) functionRevisions(ctx context.Context) ([]unstructured.Unstructured, error) {
	r.functions.mu.Lock()
	defer r.functions.mu.Unlock()

	now := r.Now()
	if since := now.Sub(r.functions.read); since >= 0 && since < functionsFor {
		return r.functions.list, nil
	}

	list, kind := &unstructured.UnstructuredList{}, pending.FunctionRevisionKind()
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))

	if err := r.Objects.Live.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("cannot list FunctionRevisions: %w", err)
	}

	r.functions.read, r.functions.list = now, list.Items

	return list.Items, nil
}
