// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes, the same for every command; exitHelp shows them.
const (
	exitError   = 1
	exitUsage   = 2
	exitFinding = 3
)

// exitHelp ends the help of every command.
const exitHelp = "Exit codes: 0 done; 1 it failed; 2 the command line is wrong; " +
	"3 it worked, and what was looked at is not as it should be (doctor, lint, test), not allowed (allowed, can), " +
	"not complete (suggest), or not decided as it was (replay)."

// errFinding is the cause when doctor found something wrong.
var errFinding = errors.New("something is not as it should be")

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode is what the process ends with.
func exitCode(err error) int {
	var usage usageError

	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), errors.Is(err, errOneObject), errors.Is(err, errProvider), errors.Is(err, errNobody),
		errors.Is(err, errLeave):
		return exitUsage
	case errors.Is(err, errFinding), errors.Is(err, errNotAllowed), errors.Is(err, errIncomplete), errors.Is(err, errChanged):
		return exitFinding
	default:
		return exitError
	}
}

// usageArgs has a wrong number of arguments end as an error in the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}

		return nil
	}
}
