// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxListed limits the held changes, and as many pending ones, that a
// condition's message lists; the rest is a count.
const maxListed = 5

// news is the part of a message that is worth an event when it changes: what is
// held, left to others, and to be fixed.
var news = regexp.MustCompile(`; \d+ (held|did not settle|left to others|to (?:correct|mend)): [\s\S]*$`)

// approveMark is before the command that approves what is held.
const approveMark = "; to let it through: "

// Status is what an XR's Kausality condition says.
type Status struct {
	// Allowed is the condition's status: false when something is held.
	Allowed bool
	// Reason of the condition.
	Reason string
	// Message of the condition. It starts with the XR's generation, and with
	// [resource.SettledMessage] once every allowed change has arrived.
	Message string
	// Overdue is true in the run in which an XR that is ready counts as settled
	// though it is not.
	Overdue bool
}

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
	s := Status{Allowed: len(f.Held) == 0, Reason: v1alpha1.ReasonAllowed}

	waits := slices.Clip(f.Pending)
	for _, text := range []string{f.Unanswered, f.Status.Pending} {
		if text != "" {
			waits = append(waits, text)
		}
	}

	switch {
	case resource.SeenReady(xr) || len(waits) > 0:
	case f.Composed == 0:
		waits = []string{describe(xr) + " has composed nothing yet"}
	case !f.Ready:
		waits = []string{describe(xr) + " is not ready yet"}
	}

	s.Overdue = len(waits) > 0 && f.Composed > 0 && overdue(xr, f)

	switch {
	case len(waits) == 0:
		s.Message = settledMessage(xr)
	case s.Overdue:
		s.Message = fmt.Sprintf("%s, for it has been ready for %s; %d did not settle: %s",
			settledMessage(xr), f.Limit, len(waits), list(waits))
	case f.Unanswered != "":
		s.Message = resource.ProgressMessage(xr) + ": " + f.Unanswered
	default:
		s.Message = resource.ProgressMessage(xr)
	}

	if len(f.Held) > 0 {
		lines, total := make([]string, len(f.Held)), len(f.Held)
		for i, h := range f.Held {
			lines[i] = h.String()

			if n, ok := allowance.MoreHeld(h.HeldChange); ok {
				total += n - 1
			}
		}

		s.Reason = v1alpha1.ReasonHeld
		s.Message += fmt.Sprintf("; %d held: %s", total, list(lines)) + howToApprove(xr, f.Held)
	}

	if len(f.Delegated) > 0 {
		s.Message += fmt.Sprintf("; %d left to others: %s", len(f.Delegated), list(f.Delegated))
	}

	if len(f.Problems) > 0 {
		s.Message += fmt.Sprintf("; %d to correct: %s", len(f.Problems), list(f.Problems))
	}

	return s
}

// howToApprove says where what is held is listed, and the command that approves it; empty
// where nothing of it can be approved.
func howToApprove(xr *unstructured.Unstructured, held []Held) string {
	_, below := resource.ParentOf(xr)

	// What is held of the XR itself was taken back, if nothing is above it: nobody can approve that.
	if !slices.ContainsFunc(held, func(h Held) bool {
		return !h.Passed && (h.Entry.Digest != "" || below && h.OnXR && h.Digest != "")
	}) {
		return ""
	}

	return approveMark + "kubectl kausality approve " + approvable(xr)
}

// approvable names what is approved, as arguments of the command: the PendingChange of the
// Claim, or of an XR that people edit, or else the XR, by which the command finds it.
func approvable(xr *unstructured.Unstructured) string {
	gvk, name, namespace := xr.GroupVersionKind(), xr.GetName(), xr.GetNamespace()
	_, below := resource.ParentOf(xr)

	if claim, ok := resource.ClaimOf(xr); ok {
		gvk, name, namespace, below = schema.FromAPIVersionAndKind(claim.APIVersion, claim.Kind), claim.Name, claim.Namespace, false
	}

	out := strings.ToLower(gvk.Kind) + "." + gvk.Group + "/" + name
	if namespace == "" {
		return out // The manager's namespace, where its PendingChange is, is not known here.
	}

	if !below {
		out = "pch/" + pending.Name(gvk.GroupKind(), name)
	}

	return out + " -n " + namespace
}

// overdue reports whether an XR that is built up has been ready for longer than it
// may take to settle.
func overdue(xr *unstructured.Unstructured, f Findings) bool {
	c, ok := resource.ConditionOf(xr, resource.ConditionReady)
	if f.Limit == 0 || resource.SeenReady(xr) || !ok || !c.True() {
		return false
	}

	since, err := time.Parse(time.RFC3339, c.LastTransitionTime)

	return err == nil && f.Now.Sub(since) >= f.Limit
}

// settledMessage says that an XR has settled, up to its last request.
func settledMessage(xr *unstructured.Unstructured) string {
	generation := resource.Generation(xr)

	return resource.SettledMessage(generation, allowance.LastRequest(xr, generation))
}

// SameNews reports whether two messages report the same held changes and
// problems.
func SameNews(a, b string) bool { return newsOf(a) == newsOf(b) }

func newsOf(message string) string {
	return news.FindString(message)
}

func list(lines []string) string {
	if len(lines) <= maxListed {
		return strings.Join(lines, "; ")
	}

	return fmt.Sprintf("%s; and %d more", strings.Join(lines[:maxListed], "; "), len(lines)-maxListed)
}
