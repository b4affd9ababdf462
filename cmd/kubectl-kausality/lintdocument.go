// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/internal/linter"
)

// lintReport is what lint prints for programs.
type lintReport struct {
	header `json:",inline"`

	// Findings are all that was found, in the order of the files, and of lines there.
	Findings []lintFinding `json:"findings"`
	// Checked is how many objects of Kausality were checked.
	Checked int `json:"checked"`
	// Definitions is how many CRDs, XRDs and Compositions were read for it.
	Definitions int `json:"definitions"`
	// Ignored are the objects of other kinds.
	Ignored []fileObject `json:"ignored"`
}

// lintFinding is one thing that is wrong with an object, or may be.
type lintFinding struct {
	// File it is in, as it was named, or stdin.
	File string `json:"file"`
	// Line of the field, from 1; of what it would be in where it is not there.
	Line int `json:"line"`
	// Column of it, in characters, from 1.
	Column int `json:"column"`
	// Object that it is about.
	Object fileObject `json:"object"`
	// Field of the object, as a path; absent for the object as a whole.
	Field string `json:"field,omitempty"`
	// Severity is error, warning or note.
	Severity typecheck.Severity `json:"severity"`
	// Rule that found it: see the list of rules.
	Rule string `json:"rule"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Remedy says what helps; absent where the message says that, too.
	Remedy string `json:"remedy,omitempty"`
}

// fileObject names an object of a file.
type fileObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func fileObjectOf(o linter.Object) fileObject {
	return fileObject{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

func lintDocument(r linter.Report) lintReport {
	out := lintReport{
		header: header{outputVersion, "LintReport"}, Checked: len(r.Objects), Definitions: len(r.Definitions),
		Findings: make([]lintFinding, 0, len(r.Findings)), Ignored: make([]fileObject, 0, len(r.Others)),
	}

	for _, f := range r.Findings {
		out.Findings = append(out.Findings, lintFinding{
			File: f.Object.File, Line: f.Position.Line, Column: f.Position.Column, Object: fileObjectOf(f.Object), Field: f.Field,
			Severity: f.Severity, Rule: f.Rule, Message: f.Message, Remedy: f.Remedy,
		})
	}

	for _, o := range r.Others {
		out.Ignored = append(out.Ignored, fileObjectOf(o))
	}

	return out
}

// lintText writes findings for people, each on a line as compilers do, and below it what
// helps.
func lintText(r linter.Report, verbose bool) string {
	var out strings.Builder

	count := map[typecheck.Severity]int{}

	for _, f := range r.Findings {
		count[f.Severity]++

		fmt.Fprintf(&out, "%s:%d:%d: %s: %s: %s [%s]\n", f.Object.File, f.Position.Line, f.Position.Column, f.Severity,
			fileObjectName(f.Object), fieldAndMessage(f.Finding), f.Rule)

		if f.Remedy != "" {
			fmt.Fprintf(&out, "    remedy: %s\n", f.Remedy)
		}
	}

	if verbose {
		for _, o := range r.Others {
			fmt.Fprintf(&out, "%s: ignored: %s\n", o.File, fileObjectName(o))
		}
	}

	fmt.Fprintf(&out, "%d errors, %d warnings, %d notes; %d objects checked, %d of other kinds ignored\n",
		count[typecheck.Error], count[typecheck.Warning], count[typecheck.Note], len(r.Objects), len(r.Others))

	return out.String()
}

// fieldAndMessage says what is wrong with which field, in one line.
func fieldAndMessage(f typecheck.Finding) string {
	text := strings.Join(strings.Fields(f.Message), " ")
	if f.Field == "" {
		return text
	}

	return f.Field + ": " + text
}

// fileObjectName names an object for people.
func fileObjectName(o linter.Object) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}

	if o.Kind == "" {
		return "no object"
	}

	return fmt.Sprintf("%s %q", o.Kind, name)
}
