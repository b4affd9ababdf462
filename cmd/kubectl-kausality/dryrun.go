// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
)

// dryName is the flag, named as kubectl's.
const dryName = "dry-run"

// Values of --dry-run, as kubectl has them.
const (
	dryNone   = "none"
	dryServer = "server"
	dryClient = "client"
)

// dryBare is what the flag is given without a value.
const dryBare = "unchanged"

// errDryRun is the cause when --dry-run is something else.
var errDryRun = errors.New(`must be "none", "server", or "client"`)

// dryRun reports whether anything is to be changed, and who checks what would be.
type dryRun struct {
	mode string
	// old is how the flag was written before it had values; empty where it was not.
	old string
}

// flag adds --dry-run.
func (d *dryRun) flag(cmd *cobra.Command) {
	d.mode = dryNone

	cmd.Flags().Var(d, dryName, "Change nothing, and say what would be: with server the API server checks everything, "+
		"with client nothing is sent to it but reads.")
	cmd.Flags().Lookup(dryName).NoOptDefVal = dryBare

	_ = cmd.RegisterFlagCompletionFunc(dryName, cobra.FixedCompletions(
		[]string{dryNone, dryServer, dryClient}, cobra.ShellCompDirectiveNoFileComp))
}

// on reports whether nothing is to be changed.
func (d *dryRun) on() bool { return d.mode == dryServer || d.mode == dryClient }

// local reports whether nothing is to be sent that would change anything.
func (d *dryRun) local() bool { return d.mode == dryClient }

// warn warns whoever wrote the flag as it was before how to write it now.
func (d *dryRun) warn(out io.Writer) {
	if d.old != "" {
		_, _ = fmt.Fprintf(out, "Warning: %s is deprecated and can be replaced with --%s=%s.\n", d.old, dryName, d.mode)
	}
}

// String is the value.
func (d *dryRun) String() string { return d.mode }

// Type is what the help says of the value.
func (*dryRun) Type() string { return "none|server|client" }

// Set reads a value: as kubectl does also nothing, and what a flag takes that is on
// or off.
func (d *dryRun) Set(text string) error {
	d.old = ""

	switch on, err := strconv.ParseBool(text); {
	case text == dryNone || text == dryServer || text == dryClient:
		d.mode = text
	case text == dryBare:
		d.mode, d.old = dryServer, "--"+dryName
	case err == nil && on:
		d.mode, d.old = dryServer, "--"+dryName+"="+text
	case err == nil:
		d.mode, d.old = dryNone, "--"+dryName+"="+text
	default:
		return errDryRun
	}

	return nil
}
