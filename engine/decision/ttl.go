// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
)

// goodForNow is how long a decision counts, at most, that may depend on the time in a way
// that nothing tells of: a condition that reads now. That is how late a function may be to
// let through, or to hold, what the condition is about.
const goodForNow = time.Minute

// GoodFor is how long what is decided by what there is may be used again, at most for as long
// as is said: until the next window opens or closes, or an exception ends; and for a minute
// where a policy, be it in Shadow mode, or an Enforcement may read now.
func (b Basis) GoodFor(most time.Duration) time.Duration {
	if b.Policies.ReadsNow() || slices.ContainsFunc(b.Enforcements, (*enforcement.Enforcement).ReadsNow) {
		most = min(most, goodForNow)
	}

	if next, ok := NextWindow(b.Upgrades, b.Enforcements, b.Now); ok {
		most = min(most, next.Sub(b.Now))
	}

	return most
}
