// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

// byUpgrade searches for an active UpgradeAllowance that covers the change. None
// does below an object that somebody edited who might not: it would carry that
// along.
func byUpgrade(o request.Objects, above *input.Above, windows input.Windows, c change.Change) (finding.Finding, bool) {
	best := windows.WindowFor(o, c)
	if best == nil || len(above.Edited) > 0 {
		return finding.Finding{}, false
	}

	return finding.Finding{Policy: best.Object.GetName(), Cause: finding.Cause{
		Initiator: input.InitiatorOfWindow(best.Object.GetName()),
		External:  best.External(),
	}}, true
}

// UsedUpgrade returns the UpgradeAllowance that allowed any of the changes.
func UsedUpgrade(findings []finding.Finding) (string, bool) {
	for _, f := range findings {
		if f.Rule == finding.RuleUpgrade {
			return f.Policy, true
		}
	}

	return "", false
}
