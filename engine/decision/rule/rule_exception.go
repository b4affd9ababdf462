// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// byException searches for an exception of each Enforcement that governs the
// object: what one of them excepts, another may still forbid. Where it is not
// sure which do, there is none.
func byException(by request.Writer, enforced input.Enforced, now time.Time, c change.Change) (finding.Finding, bool) {
	var first string

	if enforced.Unsure {
		return finding.Finding{}, false
	}

	for _, e := range enforced.Governing {
		x := e.Exception(by.User, c, now)
		if x == nil {
			return finding.Finding{}, false
		}

		if name := e.Name() + "/" + x.Name; first == "" || name < first {
			first = name
		}
	}

	if first == "" {
		return finding.Finding{}, false
	}

	return finding.Finding{Policy: first, Cause: finding.Cause{Initiator: by.User.Name, Exception: exceptionReason(enforced, first)}}, true
}

// exceptionReason is what an exception gives as its reason.
func exceptionReason(enforced input.Enforced, name string) string {
	for _, e := range enforced.Governing {
		for _, x := range e.Spec().Exceptions {
			if e.Name()+"/"+x.Name == name {
				return name + ": " + x.Reason
			}
		}
	}

	return name
}
