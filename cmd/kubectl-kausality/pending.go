// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// pendingOptions say what of what waits to show.
type pendingOptions struct {
	clusterOptions

	all, byClass bool
}

func pendingCommand() *cobra.Command {
	opts := pendingOptions{}

	cmd := &cobra.Command{
		Use:   "pending [KIND/NAME]",
		Short: "List the changes that wait for somebody to approve them",
		Long: "List what is held, by the objects that people edit: who asks for it and since when, what it changes and destroys, " +
			"what approvals there are, and the command that approves it. Of an XR, a managed resource or anything else below such an " +
			"object what waits at that one is shown. What waits below cluster-scoped objects is listed with -A.\n\n" + exitHelp,
		Example: "  kubectl kausality pending -n team-a\n" +
			"  kubectl kausality pending databaseclaim/my-database -n team-a\n" +
			"  # What a new Composition changes everywhere, equal changes together.\n" +
			"  kubectl kausality pending -A --by-class\n" +
			"  kubectl kausality pending -A -o json | jq -r '.pending[] | select(.destroys > 0) | .command'",
		Args:              usageArgs(cobra.MaximumNArgs(2)),
		ValidArgsFunction: completePending(&opts.clusterOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			return listPending(cmd.Context(), c, cmd.OutOrStdout(), args, opts, time.Now())
		},
	}

	opts.objects = true
	opts.flags(cmd)
	opts.homeFlag(cmd)

	flags := cmd.Flags()
	flags.BoolVarP(&opts.all, "all-namespaces", "A", false, "Look at all namespaces.")
	flags.BoolVar(&opts.byClass, "by-class", false,
		"Put equal changes of several objects together: of one kind, field, value from before, value asked for, and cause.")

	return cmd
}

// listPending prints what waits.
func listPending(ctx context.Context, c *cluster, out io.Writer, args []string, opts pendingOptions, now time.Time) error {
	list, where, err := c.waiting(ctx, args, opts.all)
	if err != nil {
		return err
	}

	doc := pendingDocumentOf(slices.DeleteFunc(list, func(p *v1alpha1.PendingChange) bool { return !waits(p) }))
	if opts.byClass {
		doc.Classes = classesOf(doc.Pending)
	}

	switch {
	case opts.structured():
		return opts.print(out, doc)
	case len(doc.Pending) == 0:
		return say(out, "Nothing is pending %s.\n", where)
	default:
		return say(out, "%s", wrap(doc.render(now), widthOf(out)))
	}
}

// waiting reads the PendingChanges that are meant, and says where they were searched for.
func (c *cluster) waiting(ctx context.Context, args []string, all bool) ([]*v1alpha1.PendingChange, string, error) {
	if len(args) == 0 {
		namespace, where := c.namespace, "in namespace "+c.namespace
		if all {
			namespace, where = "", "in the cluster"
		}

		list, err := c.pendingChanges(ctx, namespace)

		return list, where, err
	}

	kind, name, err := split(args)
	if err != nil {
		return nil, "", err
	}

	if all {
		return nil, "", usageError{fmt.Errorf("cannot look for %s/%s in all namespaces: give one with -n", kind, name)}
	}

	at, err := c.locatePending(ctx, []string{kind + "/" + name}, "")
	if err != nil {
		return nil, "", err
	}

	p, err := c.pendingChange(ctx, at[0])
	if p == nil {
		return nil, "at " + kind + "/" + name, err
	}

	return []*v1alpha1.PendingChange{p}, "at " + rootText(p.Spec.ObjectRef), err
}
