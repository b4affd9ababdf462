// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/pflag"

// functionKausality is the composition function.
const functionKausality = "function-kausality"

// functionNames adds the flag that says what the function is installed as. Its
// default is the manager's: its own name, and what it gets from a Configuration.
func functionNames(flags *pflag.FlagSet, names *[]string) {
	flags.StringSliceVar(names, "function-name", []string{functionKausality, "kausality-io-" + functionKausality},
		"Names that function-kausality is installed under.")
}
