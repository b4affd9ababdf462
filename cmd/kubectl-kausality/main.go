// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// kubectl-kausality is a kubectl plugin that says who asked for what: run it as
// kubectl kausality.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, root(), os.Args)

	stop()

	if differ, ok := errors.AsType[differs](err); ok {
		os.Exit(differ.code)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(exitCode(err))
	}
}

// completer is the name under which kubectl asks a plugin to complete its
// arguments.
const completer = "kubectl_complete-kausality"

// run runs the command that arguments name; the first is the program.
func run(ctx context.Context, cmd *cobra.Command, args []string) error {
	rest := args[1:]
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completer {
		rest = append([]string{cobra.ShellCompRequestCmd}, rest...)
	}

	cmd.SetArgs(rest)

	return cmd.ExecuteContext(ctx)
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-kausality",
		Short:         "Say who asked for what, find what is wrong, and clear up after accidents",
		Long:          "Say who asked for what, find what is wrong, and clear up after accidents.\n\n" + exitHelp,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kausality"},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	cmd.AddCommand(
		traceCommand(), allowedCommand(), adoptCommand(), releaseCommand(), uninstallCommand(), doctorCommand(), versionCommand(), diffCommand(),
		explainCommand(), canCommand(),
		lintCommand(),
		suggestCommand(),
		testCommand(),
		replayCommand(),
		auditCommand(),
		pendingCommand(), approveCommand(), rejectCommand(), discardCommand(),
	)

	return cmd
}
