// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
)

// writeDecisionLog writes the lines of the log of decisions.
func writeDecisionLog(out *bytes.Buffer) error {
	fmt.Fprint(out, "\n# Decision log\n\nWhat kausality-manager and function-kausality write with `--decision-log`, and "+
		"`kubectl kausality replay` reads: lines of JSON, each a Decision, an InForce or a Dropped. Fields are added to a version, and never "+
		"renamed or removed. Whoever reads a log skips lines of kinds that they do not know.\n\nCredentials in objects are masked: of a field "+
		"that is hidden the first value reads `(masked)`, another one in the same decision `(masked 2)`, and so on. The same value of a field "+
		"has the same text in all objects of a decision, and nothing else is told of it. The hashes in `kausality.io/wish` are replaced by "+
		"numbers in the same way.\n")

	for _, source := range []struct {
		file  string
		types []string
	}{
		{"internal/decisionlog/record.go", []string{
			"Header", "Decision", "By", "Composite", "User", "Resource", "Settings", "Parameter", "Check", "InForce", "Dropped",
		}},
		{"internal/decisionlog/outcome.go", []string{"Outcome", "Finding", "Lack"}},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), source.file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("cannot read the sources: %w", err)
		}

		writeShapes(out, file, source.types)
	}

	fmt.Fprint(out, "\nHeldChange, AllowancePolicy, AllowanceBinding, UpgradeAllowance and Enforcement are of the [kinds](crds.md).\n")

	return nil
}
