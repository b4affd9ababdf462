// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package right

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Remedy is the command that gives the manager what it lacks.
const Remedy = "kubectl kausality doctor --roles | kubectl apply -f -"

// RemedyFor is the one for a resource that nothing names, such as that of the owners
// of what is governed.
func RemedyFor(gr schema.GroupResource) string {
	return "kubectl kausality doctor --roles --for " + gr.String() + " | kubectl apply -f -"
}

// MissingRights is a need of which something is missing.
type MissingRights struct {
	Need

	// Missing are the rights that are.
	Missing []Right
}

// Missing are the needs of which something is missing, by what somebody who knows
// says that the manager may do.
func Missing(needs []Need, may func(Right) bool) []MissingRights {
	var out []MissingRights

	for _, n := range needs {
		l := MissingRights{Need: n}

		for _, r := range n.Rights() {
			if !may(r) {
				l.Missing = append(l.Missing, r)
			}
		}

		if len(l.Missing) > 0 {
			out = append(out, l)
		}
	}

	return out
}

// Has reports whether something is missing of a resource.
func Has(list []MissingRights, gr schema.GroupResource) bool {
	return slices.ContainsFunc(list, func(l MissingRights) bool { return l.GroupResource == gr })
}

// Of are those of some lacks that some needs are about.
func Of(list []MissingRights, needs []Need) []MissingRights {
	missing := map[Right]bool{}

	for _, l := range list {
		for _, r := range l.Missing {
			missing[r] = true
		}
	}

	return Missing(needs, func(r Right) bool { return !missing[r] })
}

// Wide are rights on more than one resource that give a right: who may be asked
// about these first has one answer for all resources of a group, or of all groups.
func (r Right) Wide() []Right {
	return []Right{{Verb: r.Verb, Group: all, Resource: all}, {Verb: r.Verb, Group: r.Group, Resource: all}}
}

// String says a lack in words: get, list and watch deployments.apps.
func (l MissingRights) String() string {
	var (
		verbs []string
		subs  []string
	)

	for _, r := range l.Missing {
		if _, sub := r.Split(); sub != "" {
			subs = append(subs, fmt.Sprintf("%s %s/%s", r.Verb, l.GroupResource, sub))
		} else {
			verbs = append(verbs, r.Verb)
		}
	}

	if len(verbs) > 0 {
		subs = append([]string{and(verbs) + " " + l.GroupResource.String()}, subs...)
	}

	return and(subs)
}

// maxSaid is how many resources a message names.
const maxSaid = 5

// Message says what is missing, and what helps; empty where nothing is.
func Message(list []MissingRights) string {
	if len(list) == 0 {
		return ""
	}

	said := make([]string, 0, maxSaid)
	for _, l := range list[:min(len(list), maxSaid)] {
		said = append(said, l.String())
	}

	what := strings.Join(said, "; ")
	if more := len(list) - len(said); more > 0 {
		what += fmt.Sprintf("; and the like of %d more", more)
	}

	return "the manager may not " + what + "; to give it the rights, run: " + Remedy
}

// Explain says what is missing of one resource, and returns the command that gives it. One that is only read
// may be that of an owner, of which nobody knows before.
func Explain(l MissingRights) (text, command string) {
	command = Remedy
	if len(l.Only) > 0 {
		command = RemedyFor(l.GroupResource)
	}

	return "the manager may not " + l.String(), command
}

// and joins words as people do.
func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}

	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
