// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// formatJUnit prints results as CI systems read them.
const formatJUnit = "junit"

// testOptions say what to test, and how to print it.
type testOptions struct {
	outputOptions

	pattern string
	update  bool
	verbose bool
	enforce bool
	// coverage is asked for, and is to be minCoverage percent at least.
	coverage    bool
	minCoverage int
	clock       func() time.Time
}

func testCommand() *cobra.Command {
	opts := testOptions{clock: time.Now}

	cmd := &cobra.Command{
		Use:   "test DIR...",
		Short: "Test policies, without a cluster",
		Long: "Test policies by scenarios: who changes what, and whether it is allowed. A scenario is a file *.txtar in one of the directories " +
			"or below: it names the files with the policies, the objects and the user, and says what is to come of it. It is decided by the " +
			"engine that decides in a cluster. Nothing else is asked, and the time is a fixed one.\n\n" +
			"Of those that fail it prints what was wanted (-) and what is decided (+), and what is missing. One that says nothing of what is " +
			"wanted fails, and what is decided is printed; --update writes that into it, and into those that fail.\n\n" +
			"With --coverage it says which AllowancePolicies, and which of their fields, selectors, conditions and subjects, no test has tried: " +
			"by a change that is allowed by them, and by one that is not for them. Of the policies, only those in files count, not those in the " +
			"scenarios.\n\n" +
			"A policy in Shadow mode lets nothing through, and a condition in Shadow mode keeps nobody from it. With --enforce they are in " +
			"force: they are tested as they will be.\n\n" +
			exitHelp + " So a test that fails, or too little coverage, is 3, and a test that cannot be read is 1.",
		Example: "  kubectl kausality test policies/tests\n" +
			"  # And have all of the policies tried.\n" +
			"  kubectl kausality test policies/tests --min-coverage 100\n" +
			"  # As it will be once what is in Shadow mode is enforced.\n" +
			"  kubectl kausality test policies/tests --enforce\n" +
			"  # Those about one kind, each with what it says.\n" +
			"  kubectl kausality test policies/tests --run database -v\n" +
			"  # For a CI system.\n" +
			"  kubectl kausality test policies/tests -o junit > results.xml",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return opts.run(cmd.Context(), cmd.OutOrStdout(), policytest.Disk(), args)
		},
	}

	flags := cmd.Flags()
	flags.StringVarP(&opts.format, "output", "o", "", "Print as json or yaml, or what "+formatPath+"TEMPLATE takes of these, of apiVersion "+
		outputVersion+", or as "+formatJUnit+", JUnit's XML; for people without it.")
	flags.StringVar(&opts.pattern, "run", "", "Test only those whose path, without its ending, this regular expression matches.")
	flags.BoolVar(&opts.update, "update", false, "Write what is decided into scenarios that fail, or say nothing of what is wanted.")
	flags.BoolVar(&opts.coverage, "coverage", false, "Say what of the policies no test has tried.")
	flags.IntVar(&opts.minCoverage, "min-coverage", 0, "Percentage of the policies' parts that is to be tried at least; without it, none.")
	flags.BoolVar(&opts.enforce, "enforce", false, "Have what is in Shadow mode be in force.")
	flags.BoolVarP(&opts.verbose, "verbose", "v", false, "List those that pass, too.")

	formats := []string{formatJSON, formatYAML, formatPath, formatJUnit}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

// validate is to be called before anything is done.
func (o *testOptions) validate() (policytest.Options, error) {
	out := policytest.Options{Update: o.update, Coverage: o.coverage || o.minCoverage > 0, Enforce: o.enforce, Clock: o.clock}

	if o.minCoverage < 0 || o.minCoverage > 100 {
		return out, usageError{fmt.Errorf("cannot have a coverage of %d%%: %w", o.minCoverage, errPercent)}
	}

	if o.format != formatJUnit {
		if err := o.outputOptions.validate(); err != nil {
			return out, fmt.Errorf("%w, or %s", err, formatJUnit)
		}
	}

	if o.pattern == "" {
		return out, nil
	}

	var err error
	if out.Select, err = regexp.Compile(o.pattern); err != nil {
		return out, usageError{fmt.Errorf("cannot select tests: %w", err)}
	}

	return out, nil
}

// run tests the scenarios in directories. The error is errFinding where one fails.
func (o *testOptions) run(ctx context.Context, out io.Writer, files policytest.Files, dirs []string) error {
	options, err := o.validate()
	if err != nil {
		return err
	}

	began := o.clock()

	results, err := policytest.Run(ctx, files, dirs, options)
	if errors.Is(err, policytest.ErrNoneSelected) {
		return usageError{fmt.Errorf("cannot select tests by %q: %w", o.pattern, err)}
	}

	if err != nil {
		return err
	}

	report := reportOf(results)
	if options.Coverage {
		report.Coverage = new(policytest.CoverageOf(results))
	}

	switch took := o.clock().Sub(began); {
	case o.format == formatJUnit:
		err = printJUnit(out, results, took)
	case o.structured():
		err = o.print(out, report)
	default:
		err = say(out, "%s", report.text(took, o.verbose))
	}

	return errors.Join(err, report.err(o.minCoverage))
}

// failedTestsError is what ends the command when tests fail.
type failedTestsError struct{ failed, all int }

func (e failedTestsError) Error() string {
	return fmt.Sprintf("%d of %d tests failed", e.failed, e.all)
}

func (e failedTestsError) Unwrap() error { return errFinding }
