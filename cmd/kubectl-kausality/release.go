// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Reasons why something is not released.
var (
	errDelete = errors.New("to delete what it stands for takes somebody who may: have an AllowancePolicy about its kind name delete " +
		"and allow {relation: External, mutations: [Delete]}, and delete it with kubectl; the first attempt is refused, and opens the gate")
	errNoProvider = errors.New("it waits for its provider to release it: if that is gone, run it again with --without-provider")
	errOnlyRecord = errors.New("the managed resource is gone; only a record of its external object is left: take it back with " +
		"kubectl kausality adopt, or throw the record away with --orphan")
	errProvider = errors.New("--without-provider goes with --orphan")
)

// waitGone is how long a managed resource may take to go.
const waitGone = 20 * time.Second

// releaseOptions say how to release.
type releaseOptions struct {
	clusterOptions

	orphan, remove, unprovided bool
}

func releaseCommand() *cobra.Command {
	opts := releaseOptions{}

	cmd := &cobra.Command{
		Use:   "release KIND/NAME",
		Short: "Release an orphaned managed resource",
		Long: "Have a managed resource whose owner is gone stand by itself: nothing tries to delete it any more, and its gate stays closed. " +
			"With --orphan the managed resource goes, and the external object stays; of one that is gone already, the record goes. " +
			"The external object is never changed.\n\n" + exitHelp,
		Example: "  kubectl kausality release object.kubernetes.crossplane.io/my-database-x7k2p\n" +
			"  kubectl kausality release object.kubernetes.crossplane.io/my-database-x7k2p --orphan",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completeObject(&opts.clusterOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			return opts.result(cmd.OutOrStdout(), c, func(out io.Writer) error {
				return release(cmd.Context(), c, out, args, opts)
			})
		},
	}

	opts.writing(cmd)

	flags := cmd.Flags()
	flags.BoolVar(&opts.orphan, "orphan", false, "Remove the managed resource, and keep the external object.")
	flags.BoolVar(&opts.unprovided, "without-provider", false, "Do not wait for a provider that is there no more.")
	flags.BoolVar(&opts.remove, "delete", false, "Say how to delete the external object, too: that takes a policy.")

	return cmd
}

// release releases one managed resource, or of the record of one.
func release(ctx context.Context, c *cluster, out io.Writer, args []string, opts releaseOptions) error {
	kind, name, err := split(args)

	switch {
	case err != nil:
		return err
	case opts.remove:
		return fmt.Errorf("cannot delete what %s %q stands for: %w", kind, name, errDelete)
	case opts.unprovided && !opts.orphan:
		return errProvider
	}

	u, err := c.Get(ctx, kind, name)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return forget(ctx, c, out, kind, name, opts.orphan, err)
	}

	if err != nil {
		return err
	}

	if opts.orphan {
		return removeManaged(ctx, c, out, u, opts.unprovided)
	}

	if _, err := c.replan(ctx, u, orphan.Release); err != nil {
		return err
	}

	stands := "stands by itself; its gate stays as it is"
	if c.dry.on() {
		stands = "would stand by itself, and its gate would stay as it is; nothing was changed"
	}

	return say(out, "%s %s %s\n", u.GetKind(), u.GetName(), stands)
}

// replan patches an object as planned, again when somebody else was faster.
func (c *cluster) replan(
	ctx context.Context, u *unstructured.Unstructured, plan func(*unstructured.Unstructured, orphan.Gone) (map[string]any, error),
) (*unstructured.Unstructured, error) {
	var patched *unstructured.Unstructured

	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := c.read(ctx, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if err != nil {
			return err
		}

		gone, err := c.gone(ctx, live)
		if err != nil {
			return err
		}

		patch, err := plan(live, gone)
		if err != nil {
			return err
		}

		patched, err = c.patch(ctx, live, patch)

		return err
	})

	return patched, err
}

// removeManaged removes a managed resource, and waits until it is gone.
func removeManaged(ctx context.Context, c *cluster, out io.Writer, u *unstructured.Unstructured, unprovided bool) error {
	external := orphan.ExternalName(u)

	u, err := c.replan(ctx, u, orphan.KeepExternal)
	if err != nil {
		return err
	}

	if c.dry.on() {
		return say(out, "%s %s would go, and no provider would be asked to delete external object %q; nothing was changed\n",
			u.GetKind(), u.GetName(), external)
	}

	if !resource.Deleting(u) { // Deleting it again is refused, past admission or not.
		if err := c.remove(ctx, u); err != nil {
			return err
		}
	}

	if unprovided {
		if _, err := c.replan(ctx, u, func(u *unstructured.Unstructured, _ orphan.Gone) (map[string]any, error) {
			return orphan.Unprovided(u), nil
		}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}

	var last *unstructured.Unstructured

	err = wait.PollUntilContextTimeout(ctx, waitGone/100, waitGone, true, func(ctx context.Context) (bool, error) {
		live, err := c.read(ctx, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && live.GetUID() != u.GetUID() {
			return true, nil
		}

		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // It took too long, which is not the API server's fault.
		}

		last = live

		return false, err
	})

	switch {
	case wait.Interrupted(err) && last != nil && orphan.Unprovided(last) != nil:
		return fmt.Errorf("cannot see the end of %s %q: %w", u.GetKind(), u.GetName(), errNoProvider)
	case err != nil:
		return fmt.Errorf("cannot see the end of %s %q: %w", u.GetKind(), u.GetName(), err)
	}

	return say(out, "%s %s is gone; no provider was asked to delete external object %q, and whether it exists was not checked\n",
		u.GetKind(), u.GetName(), external)
}

// forget throws the records of a managed resource that is gone away.
func forget(ctx context.Context, c *cluster, out io.Writer, kind, name string, orphaning bool, missing error) error {
	list, err := c.records(ctx, kind, name)
	if err != nil {
		return errors.Join(missing, err)
	}

	if len(list) == 0 {
		return missing
	}

	if !orphaning {
		return fmt.Errorf("cannot release %s %q: %w", kind, name, errOnlyRecord)
	}

	for _, r := range list {
		if err := c.remove(ctx, r.secret); err != nil {
			return err
		}

		is, was := "is gone", ", and whether it exists was not checked"
		if c.dry.on() {
			is, was = "would go", "; nothing was changed"
		}

		if err := say(out, "the record of %s %s %s; no provider is asked to delete external object %q%s\n",
			r.Object.GetKind(), r.Object.GetName(), is, orphan.ExternalName(r.Object), was); err != nil {
			return err
		}
	}

	return nil
}

func say(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format, args...); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}

	return nil
}
