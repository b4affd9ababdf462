// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composed

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// maxReported is how many XRs are remembered of which it was reported that the function
// does not run for them.
const maxReported = 4096

// report is by which CompositionRevision the function does not run, and what the
// condition said before we said so.
type report struct {
	revision string
	before   resource.Condition
}

// notRun is what the condition of an XR is to say for which the function ran, and
// does not any more; empty for nothing. Where the condition says otherwise again, by
// the same revision, that runs the function under a name that we do not know. Where it
// says what it said before, to the second, Crossplane was about to write the status
// that it had read, and we say it again.
func (c *Kinds) notRun(u *unstructured.Unstructured) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.known.Revisions[resource.RevisionOf(u)] {
		delete(c.reported, u.GetUID())
	}

	said, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	if last := c.reported[u.GetUID()]; last.revision == resource.RevisionOf(u) && last.before != said {
		return ""
	}

	return composition.NotRun(u, c.known.Revisions)
}

// noteReported remembers that an XR's condition says so.
func (c *Kinds) noteReported(u *unstructured.Unstructured, before resource.Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.reported == nil || len(c.reported) >= maxReported {
		c.reported = map[types.UID]report{}
	}

	c.reported[u.GetUID()] = report{revision: resource.RevisionOf(u), before: before}
}

// ReportNotRun has the Kausality condition of an XR say so: what it said before would
// stand for ever.
func (c *Kinds) ReportNotRun(ctx context.Context, w object.Writer, u *unstructured.Unstructured) error {
	message := c.notRun(u)
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

	c.noteReported(u, said)

	return nil
}
