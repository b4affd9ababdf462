// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
)

// writeRules writes the rules by which changes are allowed.
func writeRules(out *bytes.Buffer) error {
	out.WriteString("# Rules\n\n" +
		"A change is allowed by the first of these rules that fits; where none does, it is not allowed, or, where no policy and no\n" +
		"Enforcement is about it, it is ungoverned. The rule is in the log line of a decision, in audit annotations and in the\n" +
		"metric `kausality_webhook_decisions_total`.\n\n" +
		"| Rule | Which changes it allows |\n|---|---|\n")

	for name, contract := range rule.Rules {
		fmt.Fprintf(out, "| `%s` | %s |\n", name, cell(contract))
	}

	out.WriteString("\nNobody has to ask for these changes:\n\n")

	for contract := range rule.Exemptions {
		fmt.Fprintf(out, "- %s\n", contract)
	}

	return nil
}
