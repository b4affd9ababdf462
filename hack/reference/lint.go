// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// writeLint writes the rules by which policies are linted.
func writeLint(out *bytes.Buffer) error {
	out.WriteString("# Rules of lint\n\n" +
		"What `kubectl kausality lint` looks for. Rules are in its output, also as SARIF, and are never renamed.\n\n" +
		"| Rule | Severity | What it finds |\n|---|---|---|\n")

	for _, rule := range typecheck.Rules() {
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", rule.ID, rule.Severity, cell(rule.Text))
	}

	return nil
}
