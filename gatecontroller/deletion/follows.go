// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/judging"
)

// judge judges the deletion of a child whose parent is being deleted, as the
// garbage collector's, and as of now: in the foreground that may have begun before
// the parent knew what it gives. Where parameters of a policy cannot be read the error
// says so, beside what is decided without them: what is not passed on now never is.
func judge(ctx context.Context, by *judging.Judge, child, parent *unstructured.Unstructured) (decision.Decision, error) {
	old := child.DeepCopy()
	old.SetDeletionTimestamp(nil)

	out, err := by.Decide(ctx, request.Request{
		Operation: request.OperationDelete, Old: old, Parent: parent,
		User: policy.User{Name: policy.GarbageCollector},
	})
	if err != nil {
		return out, fmt.Errorf("cannot judge the deletion of %s %q: %w", child.GetKind(), child.GetName(), err)
	}

	return out, nil
}
