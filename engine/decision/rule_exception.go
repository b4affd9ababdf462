// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// byException searches for an exception of each Enforcement that governs the
// object: what one of them excepts, another may still forbid. Where it is not
// sure which do, there is none.
func byException(by writer, enforced enforced, now time.Time, c change.Change) (Finding, bool) {
	var first string

	if enforced.unsure {
		return Finding{}, false
	}

	for _, e := range enforced.governing {
		x := e.Exception(by.User, c, now)
		if x == nil {
			return Finding{}, false
		}

		if name := e.Name() + "/" + x.Name; first == "" || name < first {
			first = name
		}
	}

	if first == "" {
		return Finding{}, false
	}

	return Finding{Policy: first, cause: cause{initiator: by.User.Name, exception: exceptionReason(enforced, first)}}, true
}

// exceptionReason is what an exception gives as its reason.
func exceptionReason(enforced enforced, name string) string {
	for _, e := range enforced.governing {
		for _, x := range e.Spec().Exceptions {
			if e.Name()+"/"+x.Name == name {
				return name + ": " + x.Reason
			}
		}
	}

	return name
}
