// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import "github.com/kausality-io/kausality-crossplane/apis/v1alpha1"

// windowPrefix starts the initiator of what a window allows.
const windowPrefix = "UpgradeAllowance/"

// InitiatorOfWindow is who starts what an UpgradeAllowance allows, as it is
// written in traces.
func InitiatorOfWindow(name string) string { return windowPrefix + name }

// OfWindow says whether a managed resource carries an allowance because a window
// allowed its change: then a window gave it, and no policy of that name. What a
// policy gave because of a change under a window has a longer path.
func OfWindow(a v1alpha1.Allowance) bool {
	return External(a) && len(a.Trace) == 1 && a.Initiator == InitiatorOfWindow(a.Policy)
}
