// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	slashpath "path"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/internal/linter"
)

// The tool that SARIF names.
const (
	sarifTool = "kubectl-kausality"
	sarifHome = "https://github.com/kausality-io/kausality-crossplane"
	// fingerprint is the key of what a finding is known by when lines move.
	fingerprint = "kausality/v1"
)

// writeSARIF writes findings in the format of code scanning, SARIF 2.1.0, with all rules.
func writeSARIF(out io.Writer, r linter.Report) error {
	run := sarif.NewRunWithInformationURI(sarifTool, sarifHome)
	run.Tool.Driver.WithVersion(version)

	run.WithColumnKind("unicodeCodePoints")

	for _, rule := range typecheck.Rules() {
		run.AddRule(rule.ID).WithDescription(rule.Text).
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(string(rule.Severity)))
	}

	for _, f := range r.Findings {
		run.AddResult(sarifResult(f).WithRuleIndex(run.GetRuleIndex(f.Rule)))
	}

	report := sarif.NewReport()
	report.AddRun(run)

	if err := report.PrettyWrite(out); err != nil {
		return fmt.Errorf("cannot print as %s: %w", formatSARIF, err)
	}

	return say(out, "\n")
}

// sarifResult is a finding in that format. Its level is as its severity.
func sarifResult(f linter.Finding) *sarif.Result {
	text := fileObjectName(f.Object) + ": " + fieldAndMessage(f.Finding)
	if f.Remedy != "" {
		text += ". Remedy: " + f.Remedy
	}

	region := sarif.NewRegion().WithStartLine(f.Position.Line).WithStartColumn(f.Position.Column)
	place := sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation(fileURI(f.Object.File))).
		WithRegion(region)

	sum := sha256.Sum256([]byte(strings.Join([]string{
		f.Rule, f.Object.APIVersion, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Field, f.Message,
	}, "\n")))

	return sarif.NewRuleResult(f.Rule).
		WithLevel(string(f.Severity)).
		WithMessage(sarif.NewTextMessage(text)).
		AddLocation(sarif.NewLocationWithPhysicalLocation(place)).
		WithPartialFingerprints(map[string]string{fingerprint: hex.EncodeToString(sum[:16])})
}

// fileURI is a file's name as a URI, relative where the name is.
func fileURI(file string) string {
	if slashpath.IsAbs(file) {
		return (&url.URL{Scheme: "file", Path: file}).String()
	}

	return (&url.URL{Path: slashpath.Clean(file)}).String()
}
