// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// ReportNotRun has the Kausality condition of an XR say so: what it said before would
// stand for ever.
func (c *Kinds) ReportNotRun(ctx context.Context, w object.Writer, u *unstructured.Unstructured) error {
	message := condition.NotRun(u, c.Runs())
	if message == "" {
		return nil
	}

	said, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)

	since := said.LastTransitionTime
	if said.Status != string(corev1.ConditionUnknown) {
		since = metav1.Now().UTC().Format(time.RFC3339)
	}

	for i, was := range resource.List(u.Object, "status", "conditions") {
		if m, ok := was.(map[string]any); !ok || resource.String(m, "type") != v1alpha1.ConditionKausality {
			continue
		}

		err := w.ReplaceStatus(ctx, u, fmt.Sprintf("/status/conditions/%d", i), was, map[string]any{
			"type": v1alpha1.ConditionKausality, "status": string(corev1.ConditionUnknown), "reason": v1alpha1.ReasonNotRun,
			"message": message, "lastTransitionTime": since,
		})
		if err != nil {
			return fmt.Errorf("cannot say that the function does not run for %s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}

	return nil
}
