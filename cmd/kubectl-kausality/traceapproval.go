// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Attestations of a ChangeApproval in a trace.
const (
	attestedReason    = "reason"
	attestedRequester = "requester"
	attestedDecision  = "decision"
)

// approved reports whether a path starts with a ChangeApproval: its initiator has approved the
// change, and somebody else, or nobody, asked for it.
func approved(trace []v1alpha1.Hop) bool {
	return len(trace) > 0 && trace[0].Kind == approvalKind().Kind
}

// begunBy says what the initiator of a path did.
func begunBy(trace []v1alpha1.Hop) string {
	switch {
	case approved(trace) && trace[0].Attestations[attestedDecision] == string(v1alpha1.DecisionBreakGlass):
		return "allowed alone by"
	case approved(trace):
		return "approved by"
	}

	return "requested by"
}

// givenBy says who an allowance comes from.
func givenBy(a v1alpha1.Allowance) string {
	if a.Approval != "" && !approved(a.Trace) {
		return "approved by " + a.Initiator
	}

	return begunBy(a.Trace) + " " + a.Initiator
}

// renderApproval writes the hop of a ChangeApproval: who asked for what it approves, and why
// that is approved. It has no generation that says anything, for it cannot be changed.
func renderApproval(out *strings.Builder, indent string, hop v1alpha1.Hop) {
	fmt.Fprintf(out, "%s└─ %s %s\n", indent, hop.Kind, nameOf(hop))

	if by := hop.Attestations[attestedRequester]; by != "" {
		fmt.Fprintf(out, "%s      requested by %s\n", indent, visible(by))
	}

	if why := hop.Attestations[attestedReason]; why != "" {
		fmt.Fprintf(out, "%s      because: %s\n", indent, visible(why))
	}

	for _, k := range sortedKeys(hop.Attestations) {
		if k != attestedRequester && k != attestedReason && k != attestedDecision {
			fmt.Fprintf(out, "%s      %s = %s\n", indent, k, hop.Attestations[k])
		}
	}
}
