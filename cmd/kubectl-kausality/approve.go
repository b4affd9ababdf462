// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

var (
	// errNoDigest is the cause when a program approves without saying what.
	errNoDigest = errors.New("--yes goes with --digest, the status.digest of the PendingChange that was looked at")
	// errOtherDigest is the cause when the list is another one by now.
	errOtherDigest = errors.New("what waits is not what --digest says: look at it again")
	// errNotYes is the cause when a program does not say that it is one.
	errNotYes = errors.New("--digest goes with --yes")
	// errNobodyAsked is what helps where nobody can be asked.
	errNobodyAsked = fmt.Errorf("%w: give --yes and --digest", errNoTerminal)
	// errNoReason is the cause when somebody lets changes through alone, and does not say why.
	errNoReason = errors.New("--break-glass goes with --reason: say why it cannot wait for others")
	// errTimeoutAlone is the cause when a time to wait is given, and nothing to wait for.
	errTimeoutAlone = errors.New("--timeout goes with --follow")
)

// approveOptions say what to decide, and how.
type approveOptions struct {
	clusterOptions

	decision v1alpha1.ApprovalDecision
	selector string
	yes      bool
	digests  []string
	changes  []string
	reason   string
	validFor time.Duration
	follow   bool
	timeout  time.Duration
	// breakGlass lets changes through alone.
	breakGlass bool
}

func approveCommand() *cobra.Command {
	opts := approveOptions{decision: v1alpha1.DecisionApprove}

	cmd := &cobra.Command{
		Use:   "approve KIND/NAME...",
		Short: "Let changes through that are held",
		Long: "Show what waits at the object that people edit, of it or of anything below it, and what that destroys, ask, and approve exactly " +
			"that: each change once, to the very value that was shown. Where something is destroyed the answer is the object's name. " +
			"A PendingChange can be named itself, as pch/NAME. Of a list of which something cannot be approved the rest is only where --change " +
			"names it.\n\n" +
			"In an emergency --break-glass lets changes through alone: also what one asks for oneself, what takes several people, and what " +
			"somebody has rejected. It takes the verb break-glass, and is told by an event, a metric and an alert.\n\n" +
			"A program gives --yes, and with --digest which list it looked at; several objects have one --digest each. It takes the verb " +
			"approve, or approve-destructive, on the subresource kausality of what is changed.\n\n" + exitHelp,
		Example: "  kubectl kausality approve databaseclaim/my-database -n team-a --reason OPS-123\n" +
			"  # Some of the changes, and what follows from them.\n" +
			"  kubectl kausality approve databaseclaim/my-database -n team-a --change 1f0c --follow\n" +
			"  # As a program does, with .pending[].digest of what it has looked at by kubectl kausality pending -o json.\n" +
			"  kubectl kausality approve databaseclaim/my-database --yes --digest \"$LOOKED_AT\"\n" +
			"  # Nobody else is there, and it cannot wait.\n" +
			"  kubectl kausality approve databaseclaim/my-database -n team-a --break-glass --reason 'INC-7: disk full, nobody on call'\n" +
			"  # May I?\n" +
			"  kubectl auth can-i approve instances.rds.example.org --subresource=kausality -n team-a",
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completePending(&opts.clusterOptions),
		RunE:              opts.run,
	}

	opts.flags(cmd)

	flags := cmd.Flags()
	flags.DurationVar(&opts.validFor, "valid-for", 0,
		"For how long it may be used, at most 30 days; without it what the API's default is, a day.")
	flags.BoolVar(&opts.follow, "follow", false,
		"Wait until the changes are made, show what then waits below the same object, and ask again, until nothing is pending.")
	flags.BoolVar(&opts.breakGlass, "break-glass", false,
		"Let the changes through alone, whoever else has to approve them or has rejected them; takes --reason, and the verb break-glass.")
	flags.DurationVar(&opts.timeout, "timeout", 10*time.Minute, "With --follow, for how long to wait until what is approved is made.")

	return cmd
}

func rejectCommand() *cobra.Command {
	opts := approveOptions{decision: v1alpha1.DecisionReject}

	cmd := &cobra.Command{
		Use:   "reject KIND/NAME...",
		Short: "Have changes held whoever approves them",
		Long: "Show what waits at the object that people edit, of it or of anything below it, ask, and reject it: it stays held, whoever else " +
			"approves it, until the ChangeApproval is deleted or its user approves the changes. It takes the same rights as approve; " +
			"who asked for a change may reject it, too. To take an edit back use discard.\n\n" + exitHelp,
		Example: "  kubectl kausality reject databaseclaim/my-database -n team-a --reason 'not before the release'\n" +
			"  kubectl kausality reject pch/databaseclaim-my-database-1f0c2a3b -n team-a --reason OPS-124 --change 1f0c",
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completePending(&opts.clusterOptions),
		RunE:              opts.run,
	}

	opts.flags(cmd)

	return cmd
}

// flags are those of both commands.
func (o *approveOptions) flags(cmd *cobra.Command) {
	o.writing(cmd)

	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector of objects; the arguments are kinds then.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask; takes --digest.")
	flags.StringSliceVar(&o.digests, "digest", nil, "Digest of the list that was looked at, status.digest of the PendingChange.")
	flags.StringSliceVar(&o.changes, "change", nil, "Decide about these changes alone, each by the beginning of its digest.")
	flags.StringVar(&o.reason, "reason", "", "Why, such as a ticket.")

	_ = cmd.RegisterFlagCompletionFunc("change", completeChange(&o.clusterOptions))
}

// validate is to be called before anything is read.
func (o *approveOptions) validate(cmd *cobra.Command) error {
	switch {
	case o.breakGlass && strings.TrimSpace(o.reason) == "":
		return usageError{errNoReason}
	case o.yes && len(o.digests) == 0:
		return usageError{errNoDigest}
	case !o.yes && len(o.digests) > 0:
		return usageError{errNotYes}
	case !o.follow && cmd.Flags().Changed("timeout"):
		return usageError{errTimeoutAlone}
	default:
		return nil
	}
}

func (o *approveOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.validate(cmd); err != nil {
		return err
	}

	if o.breakGlass {
		o.decision = v1alpha1.DecisionBreakGlass
	}

	c, err := newCluster(o.clusterOptions)
	if err != nil {
		return err
	}

	// What is shown to a person is no part of what a program reads.
	show := cmd.OutOrStdout()
	if o.structured() {
		show = cmd.ErrOrStderr()
	}

	d := &decider{
		cluster: c, opts: *o, show: show, paint: paintOf(show), asker: askerOf(cmd.InOrStdin(), show), now: time.Now, poll: pollPending,
		settled: settledPending,
	}

	return o.result(cmd.OutOrStdout(), c, func(out io.Writer) error {
		d.out = out

		return d.decide(cmd.Context(), args)
	})
}

// decider decides about changes that are held.
type decider struct {
	*cluster

	opts approveOptions
	// out is where is said what was done, show what a person is shown before.
	out, show io.Writer
	paint     paint
	asker     asker
	now       func() time.Time
	// poll is how often is looked whether something is made, and settled for how long nothing
	// may be pending before that is the end.
	poll, settled time.Duration
}

// decide decides about all objects that arguments name. What is wrong with one is found before
// anything is written.
func (d *decider) decide(ctx context.Context, args []string) error {
	if joined := strings.Join(args, "/"); len(args) == 2 && strings.Count(joined, "/") == 1 && d.opts.selector == "" {
		args = []string{joined} // KIND NAME, as other commands take it.
	}

	all, err := d.locatePending(ctx, args, d.opts.selector)
	if err != nil {
		return err
	}

	if len(all) == 0 {
		return say(d.out, "No object of %s has such labels.\n", strings.Join(args, ", "))
	}

	choices, err := d.choices(ctx, all)
	if err != nil {
		return err
	}

	if len(choices) == 0 {
		return d.nothing(args)
	}

	for _, c := range choices {
		if err := d.complete(c); err != nil {
			return err
		}

		name, err := d.about(ctx, c)
		if err != nil {
			return err
		}

		if d.opts.follow && !d.dry.on() {
			if err := d.follow(ctx, c, name); err != nil {
				return err
			}
		}
	}

	return nil
}

// complete is an error where something of a list cannot be decided about, and nobody has said that they
// mean the rest: whoever sees a list may take it to be all of it.
func (d *decider) complete(c choice) error {
	if len(d.opts.changes) > 0 || len(c.left) == 0 || len(c.chosen) == 0 {
		return nil
	}

	if err := say(d.show, "%s\n", c.diff(d.paint, d.now())); err != nil {
		return err
	}

	var rest strings.Builder
	for _, digest := range c.digests() {
		rest.WriteString(" --change " + shortDigest(digest))
	}

	return fmt.Errorf("cannot %s changes of %s: %w:%s", d.verb(), shortText(c.change.Spec.ObjectRef), errSomeLeft, rest.String())
}

// nothing says that nothing is pending. That is wrong only for a program, which has seen
// something.
func (d *decider) nothing(args []string) error {
	if d.opts.yes {
		return fmt.Errorf("cannot %s %s: nothing is pending: %w", d.verb(), strings.Join(args, ", "), errOtherDigest)
	}

	return say(d.out, "Nothing is pending at %s.\n", strings.Join(args, ", "))
}

// choices are what is decided about of each.
func (d *decider) choices(ctx context.Context, all []pendingAt) ([]choice, error) {
	var out []choice

	for _, at := range all {
		p, err := d.pendingChange(ctx, at)
		if err != nil {
			return nil, err
		}

		if p == nil || !waits(p) || len(p.Status.Changes) == 0 {
			continue
		}

		if d.opts.yes && !slices.Contains(d.opts.digests, p.Status.Digest) {
			return nil, fmt.Errorf("cannot %s changes of %s: it has digest %q: %w",
				d.verb(), shortText(p.Spec.ObjectRef), p.Status.Digest, errOtherDigest)
		}

		c, err := choose(p, d.opts.changes, nil, d.opts.decision)
		if err != nil {
			return nil, err
		}

		out = append(out, c)
	}

	return out, nil
}

func (d *decider) verb() string {
	switch d.opts.decision {
	case v1alpha1.DecisionReject:
		return "reject"
	case v1alpha1.DecisionBreakGlass:
		return "break the glass for"
	default:
		return "approve"
	}
}

// does is what a ChangeApproval does.
func (d *decider) does() string {
	if d.opts.decision == v1alpha1.DecisionBreakGlass {
		return "breaks the glass for"
	}

	return d.verb() + "s"
}

// about shows what is decided about, asks, and writes the decision. It returns the name of the
// ChangeApproval; none where all is approved already.
func (d *decider) about(ctx context.Context, c choice) (string, error) {
	name := shortText(c.change.Spec.ObjectRef)

	if err := say(d.show, "%s\n", c.diff(d.paint, d.now())); err != nil {
		return "", err
	}

	if len(c.chosen) == 0 {
		if len(c.granted) > 0 {
			return "", nil
		}

		return "", fmt.Errorf("cannot %s changes of %s: %w", d.verb(), name, errNoneLeft)
	}

	if !d.opts.yes {
		if err := c.question(ctx, d.asker, d.opts.decision); errors.Is(err, errNoTerminal) {
			return "", usageError{fmt.Errorf("cannot %s changes of %s: %w", d.verb(), name, errNobodyAsked)}
		} else if err != nil {
			return "", fmt.Errorf("cannot %s changes of %s: %w", d.verb(), name, err)
		}
	}

	if err := d.why(ctx); err != nil {
		return "", fmt.Errorf("cannot %s changes of %s: %w", d.verb(), name, err)
	}

	made, err := d.write(ctx, c)
	if err != nil {
		return "", fmt.Errorf("cannot %s changes of %s: %w", d.verb(), name, err)
	}

	return made.GetName(), d.done(c, made)
}

// write makes the ChangeApproval. Who it is by the API server fills in.
func (d *decider) write(ctx context.Context, c choice) (*unstructured.Unstructured, error) {
	approval := &v1alpha1.ChangeApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: approvalKind().Kind},
		ObjectMeta: metav1.ObjectMeta{GenerateName: c.change.Name + "-", Namespace: c.change.Namespace},
		Spec: v1alpha1.ChangeApprovalSpec{
			PendingChange: c.change.Name, Digest: c.change.Status.Digest, Changes: c.digests(),
			Decision: d.opts.decision, Reason: d.opts.reason,
		},
	}

	if d.opts.validFor != 0 {
		approval.Spec.ValidFor = &metav1.Duration{Duration: d.opts.validFor}
	}

	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(approval)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a ChangeApproval: %w", err)
	}

	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")

	at, err := d.at(approvalKind(), u.GetNamespace())
	if err != nil {
		return nil, err
	}

	if !d.dry.local() {
		if u, err = at.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager, DryRun: d.dryRun()}); err != nil {
			return nil, err
		}
	}

	d.note(u)

	return u, nil
}

// done says what was decided.
func (d *decider) done(c choice, made *unstructured.Unstructured) error {
	verb, name := d.does(), " "+path(made.GetNamespace(), made.GetName())
	if d.dry.on() {
		verb, name = "would "+d.verb(), "" // It has its name when it is made.
	}

	text := fmt.Sprintf("ChangeApproval%s %s %s of %s", name, verb, counted(len(c.chosen), "change"), shortText(c.change.Spec.ObjectRef))

	if n := int(c.change.Status.Required); n > 1 && d.opts.decision == v1alpha1.DecisionApprove {
		text += fmt.Sprintf("; %d people have to approve", n)
	}

	if d.dry.on() {
		text += "; nothing was changed"
	}

	return say(d.out, "%s\n", text)
}
