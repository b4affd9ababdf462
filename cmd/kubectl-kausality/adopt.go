// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/served"
)

// Reasons why something is not adopted.
var (
	errNobody   = errors.New("create the owner again with the annotation crossplane.io/paused: \"true\", and name it with --by KIND/NAME")
	errNoXR     = errors.New("it is no composite resource")
	errUnbound  = errors.New("the claim has no composite resource yet")
	errXREnding = errors.New("the composite resource is being deleted")
	errUnpaused = errors.New("crossplane does not say that it is paused: is it running?")
)

// Crossplane's way to have it leave an object alone, and how it says that it
// does.
const (
	annotationPaused = "crossplane.io/paused"
	reasonPaused     = "ReconcilePaused"
)

// waitPaused is how long Crossplane may take to finish with an XR.
const waitPaused = 30 * time.Second

// adoptOptions say how to adopt.
type adoptOptions struct {
	clusterOptions

	by, part string
	resume   bool
}

func adoptCommand() *cobra.Command {
	opts := adoptOptions{}

	cmd := &cobra.Command{
		Use:   "adopt KIND/NAME [--by KIND/NAME]",
		Short: "Give an orphaned managed resource to a composite resource",
		Long: "Make a managed resource whose owner is gone a part of another composite resource, so that Crossplane goes on with it instead " +
			"of composing a second one. A managed resource that is gone itself, of which a record was kept, is created again first, " +
			"so that it only observes the external object. That is never changed by it.\n\n" +
			"To bring a deleted composite resource back:\n" +
			"1. Create it with the annotation crossplane.io/paused: \"true\", or it composes a second one at once.\n" +
			"2. Adopt each managed resource that was orphaned.\n" +
			"3. With the last one, resume it: --resume.\n\n" + exitHelp,
		Example: "  # Give it to a composite resource that was created paused.\n" +
			"  kubectl kausality adopt object.kubernetes.crossplane.io/my-database-x7k2p --by xdatabase/my-database --resume\n" +
			"  # Only look whether that could be.\n" +
			"  kubectl kausality adopt object.kubernetes.crossplane.io/my-database-x7k2p --by xdatabase/my-database --dry-run=server",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completeObject(&opts.clusterOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			return opts.result(cmd.OutOrStdout(), c, func(out io.Writer) error {
				return adopt(cmd.Context(), adoption{c}, out, args, opts)
			})
		},
	}

	opts.writing(cmd)

	flags := cmd.Flags()
	flags.StringVar(&opts.part, "resource", "", "Resource of the Composition that it is, by name; what it was without.")

	flags.StringVar(&opts.by, "by", "", "Composite resource that adopts it, or its claim, as KIND/NAME; the former owner without.")
	_ = cmd.RegisterFlagCompletionFunc("by", completeBy(&opts.clusterOptions))

	flags.BoolVar(&opts.resume, "resume", false, "Take the pause off the composite resource afterwards, whoever put it there.")

	return cmd
}

// adoption is how a managed resource becomes a part of a composite resource.
type adoption struct{ *cluster }

// adopt gives one managed resource to a composite resource.
func adopt(ctx context.Context, c adoption, out io.Writer, args []string, opts adoptOptions) error {
	kind, name, err := split(args)
	if err != nil {
		return err
	}

	// 1. Find what is left.
	u, records, err := c.left(ctx, kind, name)
	if err != nil {
		return err
	}

	// 2. Find who adopts it, and whether that can be.
	by, err := c.adopter(ctx, u, records, opts.by)
	if err != nil {
		return err
	}

	gone, err := c.gone(ctx, u)
	if err != nil {
		return err
	}

	if _, _, err := orphan.Adopt(u, by, opts.part, gone); err != nil {
		return err
	}

	// 3. Make it, where it is gone itself.
	if u.GetUID() == "" {
		if u, err = c.create(ctx, u); err != nil {
			return err
		}

		if c.dry.on() {
			return say(out, "%s %s would be created again, would only observe, and would be a part of %s %s; nothing was changed\n",
				u.GetKind(), u.GetName(), by.XR.GetKind(), by.XR.GetName())
		}

		if err := say(out, "%s %s is created again; it only observes\n", u.GetKind(), u.GetName()); err != nil {
			return err
		}
	}

	// 4. Hand it over while Crossplane is paused.
	if err := c.paused(ctx, by, opts.resume, func(ctx context.Context) error { return c.hand(ctx, u, by, opts.part) }); err != nil {
		return err
	}

	// 5. What was written down has served.
	for _, r := range records {
		if err := c.remove(ctx, r.secret); err != nil {
			return err
		}
	}

	if c.dry.on() {
		return say(out, "%s %s would be a part of %s %s; it and its external object would stay as they are: "+
			"what %[4]s wants of it otherwise would be held; nothing was changed\n",
			u.GetKind(), u.GetName(), by.XR.GetKind(), by.XR.GetName())
	}

	return say(out, "%s %s is a part of %s %s now\n"+
		"it and its external object stay as they are: what %[4]s wants of it otherwise is held, "+
		"and the condition Kausality of %[4]s shows that\n", u.GetKind(), u.GetName(), by.XR.GetKind(), by.XR.GetName())
}

// left finds a managed resource, and what was written down about it or one
// before it.
func (c adoption) left(ctx context.Context, kind, name string) (*unstructured.Unstructured, []record, error) {
	u, err := c.Get(ctx, kind, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}

	records, problem := c.records(ctx, kind, name)

	switch {
	case err == nil:
		// It may have been created from a record, and not got any further. Who may
		// not read records needs none.
		return u, slices.DeleteFunc(records, func(r record) bool {
			return orphan.ExternalName(r.Object) != orphan.ExternalName(u)
		}), nil
	case problem != nil || len(records) == 0:
		return nil, nil, errors.Join(err, problem)
	default:
		return records[0].Object, records, nil
	}
}

// adopter finds the XR that is to adopt a managed resource.
func (c adoption) adopter(ctx context.Context, u *unstructured.Unstructured, records []record, by string) (orphan.Adopter, error) {
	xr, err := c.named(ctx, u, records, by)
	if err != nil {
		return orphan.Adopter{}, err
	}

	if resource.IsClaim(xr) || resource.Map(xr.Object, "spec", "resourceRef") != nil {
		if xr, err = c.bound(ctx, xr); err != nil {
			return orphan.Adopter{}, err
		}
	}

	if resource.Deleting(xr) {
		return orphan.Adopter{}, fmt.Errorf("cannot adopt by %s %q: %w", xr.GetKind(), xr.GetName(), errXREnding)
	}

	m, err := c.mapper.RESTMapping(xr.GroupVersionKind().GroupKind(), xr.GroupVersionKind().Version)
	if err != nil {
		return orphan.Adopter{}, fmt.Errorf("cannot find kind %q: %w", xr.GetKind(), err)
	}

	definitions := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}

	xrd, err := c.read(ctx, definitions, "", m.Resource.Resource+"."+m.Resource.Group)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("cannot adopt by %s %q: %w", xr.GetKind(), xr.GetName(), errNoXR)
	}

	if err != nil {
		return orphan.Adopter{}, err
	}

	scope := resource.String(xrd.Object, "spec", "scope")
	out := orphan.Adopter{XR: xr, Legacy: scope == "" || scope == "LegacyCluster"}

	for _, ref := range resource.Composed(xr) {
		o, err := c.find(ctx, ref)
		if errors.Is(err, served.ErrGone) {
			continue
		}

		if err != nil {
			return orphan.Adopter{}, err
		}

		out.Composed = append(out.Composed, o)
	}

	return out, nil
}

// named reads who is to adopt, or else the former owner.
func (c adoption) named(
	ctx context.Context, u *unstructured.Unstructured, records []record, by string,
) (*unstructured.Unstructured, error) {
	if by != "" {
		kind, name, err := split([]string{by})
		if err != nil {
			return nil, err
		}

		return c.Get(ctx, kind, name)
	}

	ref, ok := resource.ParentOf(u)
	if !ok && len(records) > 0 {
		ref = records[0].Owner
	}

	if ref.Name == "" {
		return nil, fmt.Errorf("cannot adopt %s %q: %w", u.GetKind(), u.GetName(), errNobody)
	}

	xr, err := c.find(ctx, ref)
	if errors.Is(err, served.ErrGone) {
		return nil, fmt.Errorf("cannot adopt %s %q: its owner %s %q is gone: %w", u.GetKind(), u.GetName(), ref.Kind, ref.Name, errNobody)
	}

	return xr, err
}

// bound reads the XR that a claim is bound to.
func (c adoption) bound(ctx context.Context, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := resource.Map(claim.Object, "spec", "resourceRef")
	if resource.String(ref, "name") == "" {
		return nil, fmt.Errorf("cannot adopt by %s %q: %w", claim.GetKind(), claim.GetName(), errUnbound)
	}

	gvk := schema.FromAPIVersionAndKind(resource.String(ref, "apiVersion"), resource.String(ref, "kind"))

	return c.read(ctx, gvk, "", resource.String(ref, "name"))
}

// paused does something while Crossplane leaves an XR alone: a pass that is under
// way would take back what it has not seen.
func (c adoption) paused(ctx context.Context, by orphan.Adopter, resume bool, do func(context.Context) error) error {
	was := resource.Annotation(by.XR, annotationPaused) == "true"

	if c.dry.on() {
		return do(ctx)
	}

	if !was {
		if err := c.pause(ctx, by.XR, "true"); err != nil {
			return err
		}
	}

	err := c.quiet(ctx, by.XR)
	if err == nil {
		err = do(ctx)
	}

	// As it was, also when something failed, or the user gave up.
	if !was || resume && err == nil {
		err = errors.Join(err, c.pause(context.WithoutCancel(ctx), by.XR, nil))
	}

	return err
}

func (c adoption) pause(ctx context.Context, xr *unstructured.Unstructured, value any) error {
	_, err := c.patch(ctx, xr, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationPaused: value}}})

	return err
}

// quiet waits until Crossplane says that it leaves an XR alone.
func (c adoption) quiet(ctx context.Context, xr *unstructured.Unstructured) error {
	err := wait.PollUntilContextTimeout(ctx, waitPaused/300, waitPaused, true, func(ctx context.Context) (bool, error) {
		live, err := c.read(ctx, xr.GroupVersionKind(), xr.GetNamespace(), xr.GetName())
		if err != nil && ctx.Err() != nil {
			return false, nil //nolint:nilerr // It took too long, which is not the API server's fault.
		}

		if err != nil {
			return false, err
		}

		synced, _ := resource.ConditionOf(live, resource.ConditionSynced)

		return synced.Reason == reasonPaused, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = errUnpaused
	}

	if err != nil {
		return fmt.Errorf("cannot pause %s %q: %w", xr.GetKind(), xr.GetName(), err)
	}

	return nil
}

// hand makes a managed resource a part of an XR, and the XR refer to it.
func (c adoption) hand(ctx context.Context, u *unstructured.Unstructured, by orphan.Adopter, part string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := c.read(ctx, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if err != nil {
			return err
		}

		if by.XR, err = c.read(ctx, by.XR.GroupVersionKind(), by.XR.GetNamespace(), by.XR.GetName()); err != nil {
			return err
		}

		gone, err := c.gone(ctx, live)
		if err != nil {
			return err
		}

		managed, composite, err := orphan.Adopt(live, by, part, gone)
		if err != nil {
			return err
		}

		// First: an XR that refers to what is not its own drops it.
		if _, err := c.patch(ctx, live, managed); err != nil {
			return err
		}

		_, err = c.patch(ctx, by.XR, composite)

		return err
	})
}
