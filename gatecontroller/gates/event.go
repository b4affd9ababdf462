// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// because says why a gate moves, as far as there is room, and who requested that.
func because(plan *gate.Plan) string {
	causes := gate.Causes(plan.By)
	if causes == "" || strings.HasSuffix(plan.Why, causes) {
		return plan.Why
	}

	const head = 60 // Characters before it, such as a set of managementPolicies.

	by := "; requested by " + causes

	return message.Cut(plan.Why, max(head, message.Most-head-len(by))) + by
}
