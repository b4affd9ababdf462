// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxListed is the most held changes, and as many pending ones, that a
// condition's message lists; the rest is a count.
const maxListed = 5

// heldMark starts the part of a message about what is held.
const heldMark = " held: "

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
// whatever is held.
func Summarize(xr *unstructured.Unstructured, held []Held, pending []string) Status {
	s := Status{Allowed: len(held) == 0, Reason: v1alpha1.ReasonAllowed}

	if !resource.SeenReady(xr) && !resource.Ready(xr) && len(pending) == 0 {
		pending = []string{describe(xr) + " is not ready yet"}
	}

	if len(pending) == 0 {
		s.Message = resource.SettledMessage(resource.Generation(xr))
	} else {
		s.Message = fmt.Sprintf("%s: %s", resource.ProgressMessage(xr), list(pending))
	}

	if len(held) > 0 {
		lines := make([]string, len(held))
		for i, h := range held {
			lines[i] = h.String()
		}

		s.Reason = v1alpha1.ReasonHeld
		s.Message += fmt.Sprintf("; %d%s%s", len(held), heldMark, list(lines))
	}

	return s
}

// SameHeld says whether two messages tell of the same held changes.
func SameHeld(a, b string) bool {
	_, x, _ := strings.Cut(a, heldMark)
	_, y, _ := strings.Cut(b, heldMark)

	return x == y
}

func list(lines []string) string {
	if len(lines) <= maxListed {
		return strings.Join(lines, "; ")
	}

	return fmt.Sprintf("%s; and %d more", strings.Join(lines[:maxListed], "; "), len(lines)-maxListed)
}
