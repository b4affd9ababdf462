// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package condition is what the conditions of an XR say: how far it is, and which changes are held, for people in Kausality and
// for the manager and the next run in KausalityState.
//
// Its files:
//   - status.go: phase, status and message of the Kausality condition ([Summarize]); when an XR has settled, or is overdue
//   - message.go: the message within its length limit: held changes, problems, fields of others
//   - heldtext.go: one held change as text, from all reasons to none, cut to the room there is; its event; the command that lists it
//   - held.go: a held and an allowed change of a composed resource; held changes of the XR itself ([HeldOn])
//   - listing.go: the content of KausalityState ([List]): held changes with their cause (edit, Composition, pipeline), unstable digests,
//     and how far approvals are
//   - unseen.go: edits of an XR while no webhook was asked; fields edited since the last run; a new Composition revision ([NewRevision])
//   - report.go: whether the XR's own status, as the pipeline desires it, still changes ([Report])
//   - reported.go: the held changes of an XR, read from its condition, for the CLI ([Reported])
//   - notrun.go: the condition of an XR whose CompositionRevision does not run the function ([NotRun])
package condition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Status is what an XR's Kausality condition says.
type Status struct {
	// Allowed is the condition's status: false when something is held, or would be in mode Audit.
	Allowed bool
	// Reason of the condition.
	Reason string
	// Message of the condition, for people. It starts with the XR's generation and phase.
	Message string
	// Progress of the XR.
	Progress v1alpha1.Progress
	// News is what is worth an event when it changes, beside what is held.
	News []string
}

// Overdue reports whether an XR that is ready counts as settled though it is not.
func (s *Status) Overdue() bool { return s.Progress.Phase == v1alpha1.PhaseOverdue }

// Findings are what is found out about all that an XR composes, in one run.
type Findings struct {
	// Ready is true where the XR is ready, or will be after this run.
	Ready bool
	// Composed is how many resources there are or will be.
	Composed int
	// Held changes.
	Held []Held
	// Pending says what is under way.
	Pending []string
	// Unanswered is what nobody has answered, which holds up all else; empty for nothing.
	Unanswered string
	// Delegated are the fields that are left to others.
	Delegated []string
	// Problems that somebody has to fix.
	Problems []string
	// Status that the pipeline wishes of the XR.
	Status Reporting
	// Limit is how long an XR may be ready before it counts as settled; zero for
	// ever.
	Limit time.Duration
	// Now is the time to judge that by.
	Now time.Time
}

// Summarize says how an XR is doing: settled when nothing is pending, with
// whatever is held, and the problems that somebody has to fix. What is pending it does not
// name: Crossplane writes a condition that it read before back for a moment, and two that take
// turns have it run the pipeline again and again. One that is
// built up is not settled before it composes something and is ready, as it will
// be after this run.
func Summarize(xr *unstructured.Unstructured, f Findings) Status {
	waits := waiting(xr, f)

	s := Status{Allowed: len(f.Held) == 0, Reason: v1alpha1.ReasonAllowed, Progress: progress(xr, f, len(waits) > 0)}
	if len(f.Held) > 0 {
		s.Reason = v1alpha1.ReasonHeld
	}

	w := writer{head: phaseText(&s.Progress)}

	switch {
	case s.Overdue():
		s.tell(&w, fmt.Sprintf("%d unfinished after %s", len(waits), f.Limit), waits)
	case f.Unanswered != "":
		w.head += ": " + f.Unanswered
	}

	s.tell(&w, count(len(f.Problems), "problem"), f.Problems)
	s.tell(&w, count(len(f.Delegated), "field")+" managed by others", f.Delegated)

	s.Message = w.write(xr, f.Held, s.Progress.Phase == v1alpha1.PhaseSettled || s.Overdue())

	return s
}

// tell adds what is worth an event.
func (s *Status) tell(w *writer, what string, lines []string) {
	if len(lines) == 0 {
		return
	}

	w.rest = append(w.rest, section{what, lines})
	s.News = append(s.News, what+": "+strings.Join(lines, "; "))
}

// waiting is what is to arrive before an XR has settled.
func waiting(xr *unstructured.Unstructured, f Findings) []string {
	waits := slices.Clip(f.Pending)
	for _, text := range []string{f.Unanswered, f.Status.Pending} {
		if text != "" {
			waits = append(waits, text)
		}
	}

	switch {
	case resource.SeenReady(xr, f.Now) || len(waits) > 0:
		return waits
	case f.Composed == 0:
		return []string{Describe(xr) + " has composed nothing yet"}
	case !f.Ready:
		return []string{Describe(xr) + " is not ready yet"}
	default:
		return nil
	}
}

// progress is how far an XR is after this run.
func progress(xr *unstructured.Unstructured, f Findings, waits bool) v1alpha1.Progress {
	was, _ := resource.ProgressOf(xr)
	generation := resource.Generation(xr)
	out := v1alpha1.Progress{
		Generation: generation, Request: allowance.LastRequest(xr, generation), Settled: was.Settled, Status: f.Status.Hash, Idle: f.Status.Idle,
	}

	switch {
	case !waits:
		out.Phase = v1alpha1.PhaseSettled
	case f.Composed > 0 && overdue(xr, f):
		out.Phase = v1alpha1.PhaseOverdue
	case resource.SeenReady(xr, f.Now):
		out.Phase = v1alpha1.PhaseProgressing

		return out
	default:
		out.Phase = v1alpha1.PhaseInitializing

		return out
	}

	out.Settled = v1alpha1.Settled{Generation: out.Generation, Request: out.Request}

	return out
}

// phaseText starts the message of the Kausality condition of an XR.
func phaseText(p *v1alpha1.Progress) string {
	text := "generation " + strconv.FormatInt(p.Generation, 10) + ": "

	switch p.Phase {
	case v1alpha1.PhaseInitializing:
		return text + "initializing"
	case v1alpha1.PhaseProgressing:
		return text + "in progress"
	case v1alpha1.PhaseSettled, v1alpha1.PhaseOverdue:
	}

	text += "settled"
	if p.Request > 0 {
		text += ", request " + strconv.FormatInt(p.Request, 10)
	}

	return text
}

// overdue reports whether an XR that is built up has been ready for longer than it
// may take to settle.
func overdue(xr *unstructured.Unstructured, f Findings) bool {
	c, ok := resource.ConditionOf(xr, resource.ConditionReady)
	if f.Limit == 0 || resource.SeenReady(xr, f.Now) || !ok || !c.True() {
		return false
	}

	since, err := time.Parse(time.RFC3339, c.LastTransitionTime)

	return err == nil && f.Now.Sub(since) >= f.Limit
}
