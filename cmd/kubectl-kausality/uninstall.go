// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/internal/removal"
)

// Reasons why Kausality is not removed.
var (
	errLeave   = errors.New("say how managed resources are to be left, with --leave=open or --leave=closed")
	errRunning = errors.New("it would put everything back: stop it first, with helm uninstall, or by deleting Configuration, then Provider")
	errBlocked = errors.New("nothing was changed: see above")
	errHeld    = errors.New("these changes happen then: approve or revert them first, or take them with --release-held")
	errInUse   = errors.New("take that step out first, or it goes on gating with nobody there to open")
)

// uninstallOptions say how to remove Kausality.
type uninstallOptions struct {
	clusterOptions

	leave                  string
	forget, definitions    bool
	releaseHeld            bool
	functions, withoutLate []string
}

func uninstallCommand() *cobra.Command {
	opts := uninstallOptions{}

	cmd := &cobra.Command{
		Use:   "uninstall --leave=open|closed",
		Short: "Take Kausality out of a cluster",
		Long: "Remove what Kausality keeps in a cluster once its manager is stopped: webhook configurations, guards, finalizers, and " +
			"annotations where asked to. Managed resources are left open, with the managementPolicies that their Composition asks for; " +
			"or closed, so that their providers only observe. What has lost its owner is left closed, " +
			"and stands by itself. External objects are not changed. The manager's own Leases and certificates go last.\n\n" +
			"What is held happens once nobody holds it: it is listed, what destroys first, and refused without --release-held. " +
			"Nothing is changed where anything is in the way. It can be run again, also to open what was left closed on request.\n\n" + exitHelp,
		Example: "  kubectl kausality uninstall --leave=open --dry-run=server\n" +
			"  helm uninstall --namespace kausality-system kausality\n" +
			"  kubectl kausality uninstall --leave=open",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if leave := removal.Leave(opts.leave); leave != removal.LeaveOpen && leave != removal.LeaveClosed {
				return errLeave
			}

			c, err := newCluster(opts.clusterOptions)
			if err != nil {
				return err
			}

			return opts.result(cmd.OutOrStdout(), c, func(out io.Writer) error { return uninstall(cmd.Context(), uninstallation{c}, out, opts) })
		},
	}

	opts.writing(cmd)

	flags := cmd.Flags()
	flags.StringVar(&opts.leave, "leave", "", "How managed resources are left: open, as their Composition asks, or closed.")
	flags.BoolVar(&opts.forget, "remove-annotations", false, "Remove annotations, too: who asked for what, and what Compositions did.")
	flags.BoolVar(&opts.releaseHeld, "release-held", false, "Let what is held happen.")
	flags.BoolVar(&opts.definitions, "remove-crds", false, "Remove policies, windows and Enforcements with their CRDs.")
	functionNames(flags, &opts.functions)
	flags.StringArrayVar(&opts.withoutLate, "gate-without-late-initialize", nil, "As the manager's flag: KIND.GROUP or *.GROUP.")

	_ = cmd.RegisterFlagCompletionFunc("leave", cobra.FixedCompletions(
		[]string{string(removal.LeaveOpen), string(removal.LeaveClosed)}, cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

// leaving is one object that is released.
type leaving struct {
	object *unstructured.Unstructured
	plan   removal.Plan
}

// uninstallation is what takes Kausality out of a cluster.
type uninstallation struct{ *cluster }

// uninstall removes Kausality.
func uninstall(ctx context.Context, c uninstallation, out io.Writer, opts uninstallOptions) error {
	late, err := management.ParseKinds(opts.withoutLate)
	if err != nil {
		return fmt.Errorf("--gate-without-late-initialize: %w", err)
	}

	plan := removal.Options{Leave: removal.Leave(opts.leave), Forget: opts.forget, WithoutLateInitialize: late}

	// 1. See what there is, and whether anything is in the way.
	objects, err := c.concerned(ctx, out)
	if err != nil {
		return err
	}

	list, err := c.plans(ctx, out, objects, plan)
	err = errors.Join(err, c.unused(ctx, opts.functions))

	held := removal.Held(objects)
	for _, e := range held {
		err = errors.Join(err, say(out, "held: %s\n", visible(removal.Describe(e))))
	}

	if !c.dry.on() {
		err = errors.Join(err, c.stopped(ctx))

		if len(held) > 0 && !opts.releaseHeld {
			err = errors.Join(err, errHeld)
		}
	}

	own, problem := c.own(ctx)
	if err = errors.Join(err, problem); err != nil {
		return errors.Join(err, errBlocked)
	}

	// 2. Nobody is asked any more, for nobody is there to answer.
	if err := c.removeAll(ctx, out, askers()); err != nil {
		return err
	}

	// 3. Release everything, while guards still keep from the garbage collector
	// what has no owner.
	if err := c.leave(ctx, out, list, plan); err != nil {
		return err
	}

	last := deletionGuards()

	// 4. The kinds, and with them all that says what may follow from what.
	if opts.definitions {
		last = append(last, definitions()...)
	}

	// 5. What the manager has for itself. Before this a manager that was started
	// meanwhile could still be seen.
	return c.removeAll(ctx, out, append(last, own...))
}

// plans says what becomes of objects, and what of them is in the way.
func (c uninstallation) plans(
	ctx context.Context, out io.Writer, objects []*unstructured.Unstructured, opts removal.Options,
) ([]leaving, error) {
	var (
		list     []leaving
		problems []error
	)

	for _, u := range objects {
		plan, err := c.planRemoval(ctx, u, opts)

		switch {
		case err != nil:
			problems = append(problems, err)
		case plan.Patch != nil:
			list = append(list, leaving{object: u, plan: plan})
		}

		if err == nil && c.dry.on() && plan.Patch != nil {
			if err := sayPlan(out, u, plan, "would be"); err != nil {
				return nil, err
			}
		}
	}

	return list, errors.Join(problems...)
}

func (c uninstallation) planRemoval(ctx context.Context, u *unstructured.Unstructured, opts removal.Options) (removal.Plan, error) {
	gone, err := c.gone(ctx, u)
	if err != nil {
		return removal.Plan{}, err
	}

	opts.Gone = gone

	return removal.PlanFor(u, opts)
}

// leave releases objects, as they are now.
func (c uninstallation) leave(ctx context.Context, out io.Writer, list []leaving, opts removal.Options) error {
	if c.dry.on() {
		for _, l := range list {
			c.note(l.object)
		}

		return say(out, "%d objects would be released; nothing was changed\n", len(list))
	}

	counts := map[removal.FinalState]int{}

	for _, l := range list {
		plan, err := c.leaveOne(ctx, l.object, opts)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return err
		}

		counts[plan.FinalState]++

		if err := sayPlan(out, l.object, plan, "is"); err != nil {
			return err
		}
	}

	return say(out, "released %d objects: %d left open, %d closed, %d closed and by themselves, %d going, %d cleared\n", len(list),
		counts[removal.Opened], counts[removal.Closed], counts[removal.Alone], counts[removal.Deleting], counts[removal.Cleared])
}

// forgetful is how long an API server may take to see that nobody is to be asked
// any more.
const forgetful = 30 * time.Second

// leaveOne releases one object.
func (c uninstallation) leaveOne(ctx context.Context, u *unstructured.Unstructured, opts removal.Options) (removal.Plan, error) {
	var plan removal.Plan

	err := c.insist(ctx, func(ctx context.Context) error {
		live, err := c.read(ctx, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if err != nil {
			return err
		}

		// Crossplane takes from it what its function does not say any more.
		if plan, err = c.planRemoval(ctx, removal.Remember(live, u), opts); err != nil {
			return err
		}

		_, err = c.patch(ctx, live, plan.Patch)

		return err
	})

	return plan, err
}

// insist writes, again where somebody else was faster, or where an API server
// still asks who is gone. In a dry run nobody is gone.
func (c uninstallation) insist(ctx context.Context, write func(context.Context) error) error {
	var last error

	err := wait.PollUntilContextTimeout(ctx, forgetful/100, forgetful, true, func(ctx context.Context) (bool, error) {
		last = write(ctx)
		if !c.dry.on() && (apierrors.IsConflict(last) || asksNobody(last)) {
			return false, nil
		}

		return true, last
	})
	if wait.Interrupted(err) && last != nil {
		err = last
	}

	return err
}

// asksNobody reports whether an API server refused a request because of a webhook or
// a guard of ours.
func asksNobody(err error) bool {
	if err == nil {
		return false
	}

	return strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'kausality-") ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "."+v1alpha1.Group)
}

// sayPlan says what becomes of an object.
func sayPlan(out io.Writer, u *unstructured.Unstructured, plan removal.Plan, verb string) error {
	more := ""
	if plan.Policies != nil {
		more = fmt.Sprintf(", managementPolicies %v", plan.Policies)
	}

	if plan.Returns {
		more += ", until Crossplane gives it those of its Composition again"
	}

	if plan.FinalState == removal.Deleting {
		verb, more = "is being deleted and", ", as far as it was allowed to"
	}

	return say(out, "%s %s %s %s%s\n", u.GroupVersionKind().GroupKind(), path(u.GetNamespace(), u.GetName()), verb, plan.FinalState, more)
}

// path is how an object is named to a person.
func path(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// definitions are our CRDs.
func definitions() []named {
	gvk := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

	ours := v1alpha1.Definitions()

	out := make([]named, len(ours))
	for i, d := range ours {
		out[i] = named{gvk: gvk, name: d.Name()}
	}

	return out
}
