// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
)

// writeOutput writes the documents that kubectl kausality prints with --output.
func writeOutput(out *bytes.Buffer) error {
	fmt.Fprint(out, "\n# Output of kubectl kausality\n\nWhat `--output json` and `--output yaml` print. Fields are added to a version, "+
		"and never renamed or removed. Exit codes are in the help of every command: see [flags](flags.md).\n")

	for _, source := range []struct {
		file  string
		types []string
	}{
		{"cmd/kubectl-kausality/output.go", []string{"header", "objectRef", "resultDocument"}},
		{"cmd/kubectl-kausality/tracedocument.go", []string{"traceDocument", "heldEntry", "storedEntry", "storedBy"}},
		{"cmd/kubectl-kausality/allowed.go", []string{"answerDocument"}},
		{"cmd/kubectl-kausality/doctor.go", []string{"diagnosis"}},
		{"internal/doctor/doctor.go", []string{"Finding"}},
		{"cmd/kubectl-kausality/audit.go", []string{"auditDocument", "reportRef"}},
		{"internal/audit/finding.go", []string{"Finding", "Ref"}},
		{"cmd/kubectl-kausality/version.go", []string{"versionDocument", "installed"}},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), source.file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("cannot read the sources: %w", err)
		}

		writeShapes(out, file, source.types)
	}

	fmt.Fprint(out, "\nTraceEntry, GateRecord, Allowance and HeldChange are those of the [annotations](annotations.md).\n")

	return nil
}
