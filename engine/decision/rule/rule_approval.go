// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
)

// byApproval allows an edit that people have approved.
func byApproval(earlier input.Earlier, c change.Change) (finding.Finding, bool) {
	for _, a := range earlier.Approved {
		if a.Field == c.Field {
			return finding.Finding{Digest: a.Edit.Digest, Cause: finding.Cause{
				Initiator: a.Edit.Initiator, Trace: []v1alpha1.Hop{a.Edit.Hop}, Propagated: true,
			}}, true
		}
	}

	return finding.Finding{}, false
}
