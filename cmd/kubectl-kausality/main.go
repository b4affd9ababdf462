// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// kubectl-kausality is a kubectl plugin that says who asked for what: run it as
// kubectl kausality.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := root().ExecuteContext(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-kausality",
		Short:         "Say who asked for what, and clear up after accidents",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kausality"},
	}
	cmd.AddCommand(traceCommand(), adoptCommand(), releaseCommand(), uninstallCommand())

	return cmd
}
