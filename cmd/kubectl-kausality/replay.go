// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/internal/replay"
)

var (
	// errChanged is the cause when something is decided otherwise, or it cannot be known.
	errChanged = errors.New("not all is decided as it was")
	// errUnreadable is the cause when not all of a log can be read.
	errUnreadable = errors.New("not all of it can be read")
	// errTwice is the error where standard input is to be read more than once.
	errTwice = errors.New("give the logs as files with --chains: standard input cannot be read twice")
)

// replayOptions are those of replay.
type replayOptions struct {
	outputOptions

	policies []string
	kinds    []string
	enforce  bool
	chains   bool
}

func replayCommand() *cobra.Command {
	var opts replayOptions

	cmd := &cobra.Command{
		Use:   "replay LOG... [--policies FILE|DIR]",
		Short: "Decide what a log recorded again, by other policies",
		Long: "Decide each decision of a log again that kausality-manager or function-kausality wrote with --decision-log, and show what " +
			"is decided otherwise: by the policies in --policies, or without it by those of the log, which checks that this version " +
			"decides the same. It reads the logs, also compressed ones and - for standard input, and asks no cluster.\n\n" +
			"Of each kind of which there are any in --policies (AllowancePolicy, AllowanceBinding, UpgradeAllowance, Enforcement) these " +
			"stand for all that were in force; the other kinds stay as they were. With --enforce, what is in Shadow mode is in force: " +
			"who is hit by that is seen before it is. With --kind only decisions about objects of these kinds are made again, so that it " +
			"takes no more than the policies about them.\n\n" +
			"Each decision is decided by itself: what other decisions would have allowed to follow is not there. With --chains it is, as far as " +
			"the logs show what followed: parents carry the allowances that the decisions about them give by these policies. What is wanted " +
			"again and again until it is let through follows the first time, before the object had settled without it. What the policies ask " +
			"for and the log does not have, such as a parameter or a permission that nobody asked for then, cannot be known, and is " +
			"said so.\n\n" + exitHelp,
		Example: "  # Is all decided as it was?\n" +
			"  kubectl kausality replay decisions.log\n" +
			"  # What would these policies have done yesterday?\n" +
			"  kubectl kausality replay decisions-*.log.gz decisions.log --policies policies/\n" +
			"  # And of that, what is about one kind?\n" +
			"  kubectl kausality replay decisions.log --policies policies/cache.yaml --kind Cache.example.org\n" +
			"  # And what would have followed from that?\n" +
			"  kubectl kausality replay manager.log function.log --policies policies/ --chains\n" +
			"  # Who would be hit if what is in Shadow mode were enforced?\n" +
			"  zcat decisions-*.log.gz | kubectl kausality replay - --enforce -o json",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.validate(); err != nil {
				return err
			}

			if opts.chains && slices.Contains(args, standard) {
				return usageError{errTwice}
			}

			return replayLogs(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), openLogs(args, cmd.InOrStdin()), opts)
		},
	}

	opts.flags(cmd)
	cmd.Flags().StringArrayVar(&opts.policies, "policies", nil,
		"File, or directory of files, with what to decide by, as YAML; may be given again.")
	cmd.Flags().StringArrayVar(&opts.kinds, "kind", nil,
		"Decide only what is about objects of this kind, as KIND or KIND.GROUP; may be given again.")
	cmd.Flags().BoolVar(&opts.chains, "chains", false, "Let follow what these policies let through. Needs logs that can be read twice.")
	cmd.Flags().BoolVar(&opts.enforce, "enforce", false, "Have what is in Shadow mode be in force.")

	return cmd
}

// standard is the name of standard input.
const standard = "-"

// openLogs are the logs of arguments.
func openLogs(args []string, in io.Reader) []replay.Log {
	out := make([]replay.Log, len(args))

	for i, name := range args {
		out[i] = replay.Log{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }} //nolint:gosec // Who runs it names it.
		if name == standard {
			out[i] = replay.Log{Name: "standard input", Open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}
		}
	}

	return out
}

// replayDocument is what replay prints for programs.
type replayDocument struct {
	header         `json:",inline"`
	replay.Summary `json:",inline"`

	// Enforced is true where what is in Shadow mode was in force.
	Enforced bool `json:"enforced,omitempty"`
	// Kinds are those that were asked about; none for all.
	Kinds []string `json:"kinds,omitempty"`
	// Policies are the files and directories of the policies.
	Policies []string `json:"policies,omitempty"`
}

// replayLogs decides logs again. The error is errUnreadable where not all could be read, and
// errChanged where something is decided otherwise or cannot be known.
func replayLogs(ctx context.Context, out, terminal io.Writer, logs []replay.Log, opts replayOptions) error {
	policies := replay.Policies{Enforce: opts.enforce}

	for _, path := range opts.policies {
		if err := readPolicies(path, &policies.Objects); err != nil {
			return err
		}
	}

	if err := policies.Check(); err != nil {
		return err
	}

	start, show := time.Now(), newProgress(terminal)

	summary, err := replay.Run(ctx, logs, replay.Options{
		Policies: policies, About: opts.about(), Chains: opts.chains, Workers: runtime.GOMAXPROCS(0),
		Progress: func(decisions int) { show.showf("%s replayed", plural(decisions, "decision")) },
	})
	show.done()

	if err != nil {
		return err
	}

	if opts.structured() {
		err = opts.print(out, replayDocument{
			header: header{outputVersion, "Replay"}, Enforced: opts.enforce, Kinds: opts.kinds, Policies: opts.policies, Summary: *summary,
		})
	} else {
		err = say(out, "%s", replayText(summary, time.Since(start), widthOf(out)))
	}

	switch {
	case err != nil:
		return err
	case summary.Unreadable > 0:
		return fmt.Errorf("cannot replay: %w", errUnreadable)
	case summary.Changed+summary.Unknown > 0:
		return fmt.Errorf("replayed %s: %w", plural(summary.Decisions, "decision"), errChanged)
	default:
		return nil
	}
}

// about says of which kinds decisions are made again; nil for all.
func (o *replayOptions) about() func(schema.GroupKind) bool {
	if len(o.kinds) == 0 {
		return nil
	}

	return func(gk schema.GroupKind) bool {
		return slices.ContainsFunc(o.kinds, func(k string) bool { return strings.EqualFold(k, gk.Kind) || strings.EqualFold(k, gk.String()) })
	}
}
