// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
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

// NextWindow returns when the next of some windows opens or closes, or an
// exception ends, after a moment; false where none does.
func NextWindow(upgrades []*allowance.Window, enforcements []*enforcement.Enforcement, now time.Time) (time.Time, bool) {
	var next time.Time

	consider := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}

	for _, u := range upgrades {
		consider(u.Object.Spec.ValidFrom.Time)
		consider(u.Object.Spec.ValidUntil.Time)
	}

	for _, e := range enforcements {
		for _, x := range e.Spec().Exceptions {
			consider(x.Until.Time)
		}
	}

	return next, !next.IsZero()
}
