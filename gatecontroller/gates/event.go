// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// because says why a gate moves, and who asked for it.
func because(plan *gate.Plan) string {
	causes := gate.Causes(plan.By)
	if causes == "" || strings.HasSuffix(plan.Why, causes) {
		return plan.Why
	}

	return plan.Why + "; asked for by " + causes
}
