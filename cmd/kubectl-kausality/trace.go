// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// errOneObject is the cause when the arguments do not name one object.
var errOneObject = errors.New("name one object, as KIND/NAME or KIND NAME")

// getter reads one object of a kind as a person writes it.
type getter interface {
	Get(ctx context.Context, kind, name string) (*unstructured.Unstructured, error)
}

func traceCommand() *cobra.Command {
	var (
		opts clusterOptions
		all  bool
	)

	cmd := &cobra.Command{
		Use:   "trace KIND/NAME",
		Short: "Show the path from the person to the object",
		Long: "Show who asked for an object's last changes, by which path they came, what may still follow, " +
			"whether its gate is open and what that waits for, what is stored that nobody allowed, and what is held, " +
			"of the object and of what is made for it.\n\n" + exitHelp,
		Example: "  kubectl kausality trace databaseclaim/my-database\n" +
			"  kubectl kausality trace object.kubernetes.crossplane.io my-database-x7k2p\n" +
			"  kubectl kausality trace databaseclaim/my-database -n team-a -o json | jq -r '.changes[0].initiator'",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completeObject(&opts),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newCluster(opts)
			if err != nil {
				return err
			}

			return trace(cmd.Context(), c, cmd.OutOrStdout(), args, all, opts.outputOptions)
		},
	}

	opts.objects = true
	opts.flags(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "Show every recorded change, not only the newest.")

	return cmd
}

// trace prints the path to one object.
func trace(ctx context.Context, from getter, out io.Writer, args []string, all bool, as outputOptions) error {
	kind, name, err := split(args)
	if err != nil {
		return err
	}

	u, err := from.Get(ctx, kind, name)
	if err != nil {
		return err
	}

	var near related
	if more, ok := from.(finder); ok {
		near = relatedTo(ctx, more, u)
	}

	if g, ok := from.(gater); ok {
		near.gates = func(name string) *policy.Gate { return g.gate(ctx, name) }
	}

	doc, err := documentOf(u, near)
	if err != nil {
		return err
	}

	if as.structured() {
		return as.print(out, &doc)
	}

	if _, err := io.WriteString(out, wrap(render(u, &doc, all), widthOf(out))); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}

	return nil
}

// split reads KIND/NAME or KIND NAME.
func split(args []string) (kind, name string, err error) {
	if len(args) == 1 {
		kind, name, _ = strings.Cut(args[0], "/")
	} else {
		kind, name = args[0], args[1]
	}

	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("cannot read %q: %w", strings.Join(args, " "), errOneObject)
	}

	return kind, name, nil
}
