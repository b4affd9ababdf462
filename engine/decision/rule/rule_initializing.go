// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/grant"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byInitializing allows what a parent does before it was ever ready, but for what it took over ([request.Adopted]).
func byInitializing(
	o request.Objects, by request.Writer, how request.Manner, now time.Time, problems *request.Problems,
) (finding.Finding, bool) {
	if o.Operation == request.OperationDelete || o.Parent == nil || resource.Deleting(o.Parent) || request.Adopted(o, how) ||
		o.ParentBuilt(now) || !request.Builds(o, by, how) {
		return finding.Finding{}, false
	}

	f := finding.Finding{Cause: implicit(o, by, problems, v1alpha1.MutationCreate)}
	f.Cause.External = grant.ImplicitExternal()

	return f, true
}
