// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

var (
	// errNoTerminal is the cause when nobody can be asked.
	errNoTerminal = errors.New("there is no terminal at which to ask")
	// errDeclined is the cause when somebody who was asked did not say yes.
	errDeclined = errors.New("it was not confirmed, and nothing was written")
)

// asker asks whoever runs the command.
type asker struct {
	// in is what they write; nil where there is no terminal.
	in *bufio.Reader
	// out is where questions are written.
	out io.Writer
}

// askerOf asks at a terminal.
func askerOf(in io.Reader, out io.Writer) asker {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return asker{out: out}
	}

	return asker{in: bufio.NewReader(f), out: out}
}

// ask returns the answer to a question, without space around it. The end of the input is the
// empty answer.
func (a asker) ask(ctx context.Context, question string) (string, error) {
	if a.in == nil {
		return "", errNoTerminal
	}

	if err := say(a.out, "%s ", question); err != nil {
		return "", err
	}

	type answer struct {
		line string
		err  error
	}

	// Reading ends only with the process, which ends where somebody interrupts it.
	got := make(chan answer, 1)

	go func() {
		line, err := a.in.ReadString('\n')
		got <- answer{line, err}
	}()

	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case is := <-got:
		if is.err != nil && !errors.Is(is.err, io.EOF) {
			return "", fmt.Errorf("cannot read an answer: %w", is.err)
		}

		return strings.TrimSpace(is.line), nil
	}
}

// confirm asks a question that is answered with yes or no. The error is errDeclined unless the
// answer is yes.
func (a asker) confirm(ctx context.Context, question string) error {
	got, err := a.ask(ctx, question+" [y/N]")
	if err != nil {
		return err
	}

	if got = strings.ToLower(got); got != "y" && got != "yes" {
		return errDeclined
	}

	return nil
}

// confirmName asks for a name to be typed.
func (a asker) confirmName(ctx context.Context, question, name string) error {
	got, err := a.ask(ctx, fmt.Sprintf("%s Type %s to confirm:", question, visible(name)))
	if err != nil {
		return err
	}

	if got != name {
		return errDeclined
	}

	return nil
}

// alone is what somebody is told who lets changes through alone.
const alone = "They are let through whoever else has to approve them or has rejected them, and everybody is told so."

// why asks for the reason of a rejection, where there is none and somebody is there: who is held by it
// sees that, and cannot know otherwise what would end it.
func (d *decider) why(ctx context.Context) error {
	if d.opts.decision != v1alpha1.DecisionReject || d.opts.yes || strings.TrimSpace(d.opts.reason) != "" {
		return nil
	}

	got, err := d.asker.ask(ctx, "Why?")
	d.opts.reason = got

	return err
}

// question asks whether a decision is meant. Where an approval destroys something, its answer
// is the name of the object that people edit.
func (c choice) question(ctx context.Context, a asker, as v1alpha1.ApprovalDecision) error {
	root := c.change.Spec.ObjectRef
	act := string(as)
	if as == v1alpha1.DecisionBreakGlass {
		act = "Break the glass for"
	}

	text := fmt.Sprintf("%s %s of %s", act, counted(len(c.chosen), "change"), shortText(root))

	lost := c.destroyed()

	switch {
	case as == v1alpha1.DecisionBreakGlass && len(lost) == 0:
		return a.confirmName(ctx, text+"? "+alone, root.Name)
	case len(lost) == 0 || !as.Approves():
		return a.confirm(ctx, text+"?")
	}

	if as == v1alpha1.DecisionBreakGlass {
		text += "? " + alone + " Go on"
	}

	names := make([]string, 0, maxMembers)
	for _, e := range lost[:min(len(lost), maxMembers)] {
		names = append(names, destroyedText(e, root))
	}

	if more := len(lost) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}

	return a.confirmName(ctx, fmt.Sprintf("%s? It destroys: %s.", text, strings.Join(names, "; ")), root.Name)
}
