// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

const (
	// pollPending is how often is looked whether something is made.
	pollPending = time.Second
	// settledPending is for how long nothing may be pending before that is the end: what
	// follows one level below is held, and listed, within two seconds.
	settledPending = 5 * time.Second
)

var (
	// errNotMade is the cause when what was approved is not made.
	errNotMade = errors.New("it is not made")
	// errListGone is the cause when nobody can know whether it is.
	errListGone = errors.New("the PendingChange is gone, and with it what would say whether it is made: look at the object")
	// errMoreWaits is the cause when a program would have to look at what follows.
	errMoreWaits = errors.New("more waits now, which takes another look, and its own --digest")
	// errFollowed is the cause when it takes too long.
	errFollowed = errors.New("it took longer than --timeout")
)

// following is how far what was approved of one object is.
type following struct {
	*decider

	at   pendingAt
	name string
	// seen are digests of all that was shown, or was there when something was; decided those
	// of what is approved, by what it is of; said those of which the end was said.
	// Unmade are those of which it was that nothing asks for them any more.
	seen    []string
	decided map[string]string
	said    map[string]bool
	unmade  []string
	// approvals are the names of the ChangeApprovals that were made.
	approvals []string
}

// follow waits until what is approved is made, shows what is pending then, and asks again.
func (d *decider) follow(ctx context.Context, c choice, approval string) error {
	f := &following{
		decider: d, at: pendingAt{c.change.Namespace, c.change.Name}, name: shortText(c.change.Spec.ObjectRef),
		decided: map[string]string{}, said: map[string]bool{},
	}
	f.add(c, approval)

	begun, quiet, last := d.now(), time.Time{}, c.change.Status.Digest

	for {
		p, err := d.pendingChange(ctx, f.at)
		if err != nil {
			return err
		}

		if p == nil {
			return f.end(nil)
		}

		wait, err := f.look(p)
		if err != nil {
			return err
		}

		next, err := choose(p, nil, f.seen, d.opts.decision)

		switch {
		case err != nil:
			return err
		case len(next.chosen) > 0 && p.Status.Digest == last: // It has been that for a moment.
			if err := f.ask(ctx, next); err != nil {
				return err
			}

			begun, quiet = d.now(), time.Time{}
		case len(wait)+len(next.chosen) > 0:
			quiet = time.Time{}
		case quiet.IsZero():
			quiet = d.now()
		case d.now().Sub(quiet) >= d.settled:
			return f.end(p)
		}

		if last = p.Status.Digest; d.now().Sub(begun) > d.opts.timeout {
			return fmt.Errorf("cannot see the end of what was approved of %s: %w; it waits for: %s", f.name, errFollowed, strings.Join(wait, ", "))
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d.poll):
		}
	}
}

// add remembers what is decided about.
func (f *following) add(c choice, approval string) {
	for _, e := range c.change.Status.Changes {
		f.seen = append(f.seen, e.Digest)
	}

	for _, e := range slices.Concat(c.chosen, c.granted) {
		f.decided[e.Digest] = describedChange(e, c.change.Spec.ObjectRef)
	}

	if approval != "" {
		f.approvals = append(f.approvals, approval)
	}
}

// ask decides about what is pending next.
func (f *following) ask(ctx context.Context, next choice) error {
	if f.opts.yes {
		return fmt.Errorf("cannot follow what was approved of %s: %w: %s", f.name, errMoreWaits, next.change.Status.Digest)
	}

	approval, err := f.about(ctx, next)
	if err != nil {
		return err
	}

	f.add(next, approval)

	return nil
}

// look says what has been made since the last look, and returns what is waited for. The error
// says why something is never made.
func (f *following) look(p *v1alpha1.PendingChange) ([]string, error) {
	var wait []string

	for _, digest := range sortedKeys(f.decided) {
		listed := slices.ContainsFunc(p.Status.Changes, func(e v1alpha1.HeldChange) bool { return e.Digest == digest })
		state, message := f.stateOf(p, digest)

		switch state {
		case v1alpha1.ApprovalStateApplied:
			if err := f.tell(digest, "made"); err != nil {
				return nil, err
			}
		case v1alpha1.ApprovalStateSuperseded:
			if !f.said[digest] {
				f.unmade = append(f.unmade, f.decided[digest])
			}

			if err := f.tell(digest, "nothing asks for it any more"); err != nil {
				return nil, err
			}
		case v1alpha1.ApprovalStateExpired, v1alpha1.ApprovalStateNotAllowed, v1alpha1.ApprovalStateRejected:
			return nil, fmt.Errorf("cannot follow %s: %w: %s %s", f.decided[digest], errNotMade, state, visible(message))
		case "":
			if listed { // The manager has not seen the approval yet.
				wait = append(wait, f.decided[digest])
			}
		default:
			wait = append(wait, strings.TrimSpace(f.decided[digest]+" ("+string(state)+") "+visible(message)))
		}
	}

	return wait, nil
}

// stateOf is how far the approval of a change is: one that was made here, or else any that
// there is.
func (f *following) stateOf(p *v1alpha1.PendingChange, digest string) (v1alpha1.ApprovalState, string) {
	var found v1alpha1.PendingApproval

	for _, a := range p.Status.Approvals {
		switch {
		case a.Digest != digest:
		case a.State == v1alpha1.ApprovalStateApplied, slices.Contains(f.approvals, a.Name):
			return a.State, a.Message
		case found.State == "":
			found = a
		}
	}

	if len(f.approvals) > 0 && found.State != v1alpha1.ApprovalStateGranted {
		return "", "" // It is of somebody else, or of another time.
	}

	return found.State, found.Message
}

// tell says the end of one change, once.
func (f *following) tell(digest, end string) error {
	if f.said[digest] {
		return nil
	}

	f.said[digest] = true

	return say(f.out, "%s: %s\n", f.decided[digest], end)
}

// end says that nothing is pending any more, or what still is. It is an error where something that was
// approved is not made, or nobody can know.
func (f *following) end(p *v1alpha1.PendingChange) error {
	for _, digest := range sortedKeys(f.decided) {
		if p == nil && !f.said[digest] {
			return fmt.Errorf("cannot follow %s: %w", f.decided[digest], errListGone)
		}
	}

	if len(f.unmade) > 0 {
		return fmt.Errorf("cannot follow %s: %w: nothing asks for it any more", strings.Join(f.unmade, ", "), errNotMade)
	}

	if p == nil || len(p.Status.Changes) == 0 {
		return say(f.out, "Nothing is pending at %s any more.\n", f.name)
	}

	return say(f.out, "All that was approved of %s is made; still waiting: %s, see kubectl kausality pending %s\n",
		f.name, counted(int(p.Status.Total), "change"), argumentText(p.Spec.ObjectRef))
}
