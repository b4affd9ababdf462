// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// byApproval allows an edit that people have approved.
func byApproval(earlier earlier, c change.Change) (Finding, bool) {
	for _, a := range earlier.approved {
		if a.field == c.Field {
			return Finding{Digest: a.edit.Digest, cause: cause{
				initiator: a.edit.Initiator, trace: []v1alpha1.Hop{a.edit.Hop}, propagated: true,
			}}, true
		}
	}

	return Finding{}, false
}
