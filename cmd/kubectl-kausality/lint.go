// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
	"github.com/kausality-io/kausality-crossplane/internal/linter"
)

// formatSARIF prints findings as code scanning reads them.
const formatSARIF = "sarif"

// Causes of a wrong command line.
var (
	errNoFiles  = errors.New("say what to lint, with --filename; - is standard input")
	errSeverity = errors.New("give note, warning or error")
)

// lintOptions say what to lint, and what to tell.
type lintOptions struct {
	outputOptions

	files      []string
	strict     bool
	verbose    bool
	severity   string
	crossplane string
	// now and in are what is read besides files.
	now time.Time
	in  io.Reader
}

func lintCommand() *cobra.Command {
	opts := lintOptions{}

	cmd := &cobra.Command{
		Use:   "lint -f FILE|DIR...",
		Short: "Find what is wrong with policies before they are applied",
		Long: "Find what is wrong with AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements before they are applied. " +
			"No cluster is asked.\n\n" +
			"Errors are what admission refuses: fields, values and rules of the schema, expressions that do not compile, paths that are none. " +
			"Warnings are what admission lets pass though it does not do what it says, as status.typeChecking tells in a cluster. " +
			"Notes may be meant as they are, or depend on what else is in the cluster: chains whose next link is missing, " +
			"allowances that nobody may carry on, policies that another one covers.\n\n" +
			"Paths and expressions are checked against the schemas of CRDs and XRDs among the files, and of Kubernetes' own kinds. " +
			"What a Composition is made of is read, too. Objects of other kinds are ignored. Of directories, files that end in " +
			".yaml, .yml and .json are read, and directories below them, but for those whose names begin with a dot.\n\n" +
			"It exits with 3 where there are errors, and with --strict also where there are warnings.\n\n" + exitHelp,
		Example: "  kubectl kausality lint -f policies/ -f xrds/\n" +
			"  kustomize build . | kubectl kausality lint -f -\n" +
			"  # For code scanning.\n" +
			"  kubectl kausality lint -f . -o sarif > kausality.sarif",
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.files, opts.now, opts.in = append(opts.files, args...), time.Now(), cmd.InOrStdin()

			return runLint(cmd.Context(), cmd.OutOrStdout(), opts)
		},
	}

	flags := cmd.Flags()
	flags.StringSliceVarP(&opts.files, "filename", "f", nil, "File or directory to lint; - is standard input. It can be given several times.")
	flags.BoolVar(&opts.strict, "strict", false, "Exit with 3 where there are warnings, too.")
	flags.StringVar(&opts.severity, "severity", string(typecheck.Note),
		"Tell of findings of this severity and greater: note, warning or error.")
	flags.BoolVarP(&opts.verbose, "verbose", "v", false, "List the objects of other kinds, which are ignored.")
	flags.StringVar(&opts.crossplane, "crossplane-service-account", defaultCrossplane,
		"User name Crossplane works under.")
	flags.StringVarP(&opts.format, "output", "o", "", "Print as json or yaml, or what "+formatPath+"TEMPLATE takes of these, of apiVersion "+
		outputVersion+"; as sarif for code scanning; for people without it.")

	_ = cmd.RegisterFlagCompletionFunc("filename", completeFiles)
	_ = cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{formatJSON, formatYAML, formatPath, formatSARIF}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("severity",
		cobra.FixedCompletions([]string{string(typecheck.Note), string(typecheck.Warning), string(typecheck.Error)},
			cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

// completeFiles completes the names of files that can be linted.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// validate is to be called before anything is read.
func (o *lintOptions) validate() error {
	switch typecheck.Severity(o.severity) {
	case typecheck.Note, typecheck.Warning, typecheck.Error:
	default:
		return usageError{fmt.Errorf("cannot tell of severity %q: %w", o.severity, errSeverity)}
	}

	switch {
	case len(o.files) == 0:
		return usageError{errNoFiles}
	case o.format == formatSARIF:
		return nil
	default:
		return o.outputOptions.validate()
	}
}

// runLint lints files, and prints what is found. The error is errFinding where that is to
// fail, and of files that cannot be read, also where others can.
func runLint(ctx context.Context, out io.Writer, opts lintOptions) error {
	if err := opts.validate(); err != nil {
		return err
	}

	// 1. Read what can be read.
	objects, unread := readManifests(opts.files, opts.in)

	// 2. Find what is wrong.
	report, err := linter.Lint(ctx, objects, linter.Options{
		Settings: request.Settings{Crossplane: opts.crossplane}, Now: opts.now,
	})
	if err != nil {
		return err
	}

	failed := opts.fails(report)
	report.Findings = opts.told(report.Findings)

	// 3. Tell.
	switch {
	case opts.format == formatSARIF:
		err = writeSARIF(out, report)
	case opts.structured():
		err = opts.print(out, lintDocument(report))
	default:
		err = say(out, "%s", lintText(report, opts.verbose))
	}

	switch {
	case err != nil:
		return err
	case unread != nil:
		return unread
	case failed:
		return errFinding
	default:
		return nil
	}
}

// fails reports whether the command is to fail by what was found, told or not.
func (o *lintOptions) fails(r linter.Report) bool {
	for _, f := range r.Findings {
		if f.Severity == typecheck.Error || f.Severity == typecheck.Warning && o.strict {
			return true
		}
	}

	return false
}

// told are the findings that are told.
func (o *lintOptions) told(list []linter.Finding) []linter.Finding {
	var out []linter.Finding

	for _, f := range list {
		if f.Severity.Rank() <= typecheck.Severity(o.severity).Rank() {
			out = append(out, f)
		}
	}

	return out
}
