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
		{"cmd/kubectl-kausality/pendingdocument.go", []string{"pendingDocument", "pendingEntry", "pendingClass", "classMember"}},
		{"cmd/kubectl-kausality/can.go", []string{"verdictDocument", "verdictEntry", "verdictsDocument"}},
		{"cmd/kubectl-kausality/explanationdocument.go", []string{
			"explanationDocument", "explainedAllowance", "explainedWindow", "explainedPolicy", "explainedField", "explainedSubject",
			"explainedBinding", "explainedEnforcement", "explainedException", "brokenPolicy",
		}},
		{"engine/policy/result.go", []string{"Result"}},
		{"cmd/kubectl-kausality/doctor.go", []string{"diagnosis"}},
		{"internal/doctor/doctor.go", []string{"Finding of doctor"}},
		{"cmd/kubectl-kausality/lintdocument.go", []string{"lintReport", "lintFinding", "fileObject"}},
		{"cmd/kubectl-kausality/testreport.go", []string{"testReport", "testEntry"}},
		{"internal/policytest/compare.go", []string{"Difference"}},
		{"internal/policytest/covered.go", []string{"Coverage", "CoveredPolicy", "CoveredItem"}},
		{"cmd/kubectl-kausality/audit.go", []string{"auditDocument", "reportRef"}},
		{"internal/audit/finding.go", []string{"Finding of audit", "Ref"}},
		{"cmd/kubectl-kausality/version.go", []string{"versionDocument", "installed"}},
		{"cmd/kubectl-kausality/replay.go", []string{"replayDocument"}},
		{"internal/replay/summary.go", []string{"Summary", "Change", "Example", "Count", "Problem"}},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), source.file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("cannot read the sources: %w", err)
		}

		writeShapes(out, file, source.types)
	}

	fmt.Fprint(out, "\nTraceEntry, GateRecord and Allowance are those of the [annotations](annotations.md), HeldChange, Cause, "+
		"PendingApproval and ObjectReference those of a [PendingChange](crds.md).\n")

	return nil
}
