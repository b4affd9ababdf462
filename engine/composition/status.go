// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxListed is the most held changes, and as many pending ones, that a
// condition's message lists; the rest is a count.
const maxListed = 5

// news is the part of a message that is worth an event when it changes: what is
// held, and what is to be mended.
var news = regexp.MustCompile(`; \d+ (held|to mend): [\s\S]*$`)

// Status is what an XR's Kausality condition says.
type Status struct {
	// Allowed is the condition's status: false when something is held.
	Allowed bool
	// Reason of the condition.
	Reason string
	// Message of the condition. It starts with the XR's generation, and with
	// [resource.SettledMessage] once every allowed change has arrived.
	Message string
}

// Summarize says how an XR is doing: settled when nothing is pending, with
// whatever is held, and the problems that somebody has to mend. One that is
// built up is not settled before it is ready, as it will be after this round.
func Summarize(xr *unstructured.Unstructured, ready bool, held []Held, pending, problems []string) Status {
	s := Status{Allowed: len(held) == 0, Reason: v1alpha1.ReasonAllowed}

	if !resource.SeenReady(xr) && !ready && len(pending) == 0 {
		pending = []string{describe(xr) + " is not ready yet"}
	}

	if len(pending) == 0 {
		s.Message = resource.SettledMessage(resource.Generation(xr))
	} else {
		s.Message = fmt.Sprintf("%s: %s", resource.ProgressMessage(xr), list(pending))
	}

	if len(held) > 0 {
		lines, total := make([]string, len(held)), len(held)
		for i, h := range held {
			lines[i] = h.String()

			if n, ok := allowance.MoreHeld(h.HeldChange); ok {
				total += n - 1
			}
		}

		s.Reason = v1alpha1.ReasonHeld
		s.Message += fmt.Sprintf("; %d held: %s", total, list(lines))
	}

	if len(problems) > 0 {
		s.Message += fmt.Sprintf("; %d to mend: %s", len(problems), list(problems))
	}

	return s
}

// SameNews says whether two messages tell of the same held changes and
// problems.
func SameNews(a, b string) bool { return news.FindString(a) == news.FindString(b) }

func list(lines []string) string {
	if len(lines) <= maxListed {
		return strings.Join(lines, "; ")
	}

	return fmt.Sprintf("%s; and %d more", strings.Join(lines[:maxListed], "; "), len(lines)-maxListed)
}
