// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// NotRun returns the message that the Kausality condition of an XR takes, with status
// Unknown, once the CompositionRevision that the XR is composed by does not run the
// function. It is empty where the function may run, never did, the condition says so
// already, or runs fail. Revisions are the names of CompositionRevisions, with whether they run it. The function
// may be installed under a name that is not known: it runs by the revision where its own record says so.
func NotRun(xr *unstructured.Unstructured, revisions map[string]bool) string {
	name := resource.RevisionOf(xr)

	runs, known := revisions[name]
	c, ran := resource.ConditionOf(xr, v1alpha1.ConditionKausality)

	if runs || !known || !ran || !resource.IsComposite(xr) || failing(xr, c) || resource.RanAt(xr) == name {
		return ""
	}

	p, _ := resource.ProgressOf(xr)

	message := fmt.Sprintf("generation %d: CompositionRevision %s has no step that runs function-kausality, and nothing is held. "+
		"Add the step, or see docs/install.md", cmp.Or(p.Generation, resource.Generation(xr)), name)
	if c.Message == message {
		return ""
	}

	return message
}

// failing reports whether runs of the pipeline fail, which take a condition away each time: who wrote it again would have it run
// again.
func failing(xr *unstructured.Unstructured, c resource.Condition) bool {
	synced, _ := resource.ConditionOf(xr, resource.ConditionSynced)

	return c.Status == "Unknown" && c.Reason != v1alpha1.ReasonNotRun && !synced.True()
}
