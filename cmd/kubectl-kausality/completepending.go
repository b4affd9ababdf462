// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// completePending completes objects at which something is pending; of one that is named in
// another way, as any object is.
func completePending(o *clusterOptions) completion {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && !strings.Contains(args[0], "/") {
			return completeObject(o)(cmd, args, text)
		}

		out, directive := o.complete(cmd.Context(), func(ctx context.Context, c *cluster) []string {
			return c.pendingNames(ctx, args, text)
		})
		if len(out) > 0 || directive == cobra.ShellCompDirectiveError {
			return out, directive
		}

		return completeBy(o)(cmd, args, text)
	}
}

// pendingNames are the objects of the namespace at which something is pending, and that
// are not among the arguments yet.
func (c *cluster) pendingNames(ctx context.Context, args []string, text string) []string {
	list, err := c.pendingChanges(ctx, c.namespace)
	if err != nil {
		return nil
	}

	var out []string

	for _, p := range list {
		name, _, _ := strings.Cut(argumentText(p.Spec.ObjectRef), " ")
		if waits(p) && strings.HasPrefix(name, text) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// completeChange completes digests of the changes of the objects that are named, each with
// what it is of.
func completeChange(o *clusterOptions) completion {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return o.complete(cmd.Context(), func(ctx context.Context, c *cluster) []string { return c.changeNames(ctx, args, text) })
	}
}

func (c *cluster) changeNames(ctx context.Context, args []string, text string) []string {
	at, err := c.locatePending(ctx, args, "")
	if err != nil {
		return nil
	}

	var out []string

	for _, where := range at {
		p, err := c.pendingChange(ctx, where)
		if err != nil || p == nil {
			continue
		}

		for _, e := range p.Status.Changes {
			if hex := shortDigest(e.Digest); unapprovable(e) == "" && strings.HasPrefix(hex, strings.TrimPrefix(text, digestPrefix)) {
				out = append(out, hex+"\t"+describedChange(e, p.Spec.ObjectRef))
			}
		}
	}

	return out
}

// describedChange is a change in one line.
func describedChange(e v1alpha1.HeldChange, root v1alpha1.ObjectReference) string {
	return refText(e, root) + " " + heldText(e)
}
