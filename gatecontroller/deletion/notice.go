// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/internal/recorder"
)

// tell records events, and reports whether the last of them is new. What cannot be recorded keeps nothing from going: it is
// in the log.
func (e *Leftovers) tell(ctx context.Context, notices ...recorder.Notice) bool {
	isNew := false

	for _, n := range notices {
		recorded, err := n.Record(ctx, e.writer.Client, e.now())
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot record an event", "note", n.Note)
		}

		isNew = recorded || err != nil
	}

	return isNew
}

func referTo(u *unstructured.Unstructured) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
	}
}
