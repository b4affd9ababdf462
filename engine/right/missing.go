// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package right

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/message"
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
	Need Need

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
	return slices.ContainsFunc(list, func(l MissingRights) bool { return l.Need.GroupResource == gr })
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
func (l MissingRights) String() string { return said(grouped([]MissingRights{l}), 0) }

// Message says in at most so many characters what is missing, and what helps; empty where nothing is.
func Message(list []MissingRights, most int) string {
	const may = "the manager may not "

	groups := grouped(list)

	resources := 0
	for _, g := range groups {
		resources += len(g.resources)
	}

	text := ""

	for left := range resources { // As many as fit.
		if text = message.Then(may+said(groups, left), Remedy); utf8.RuneCountInString(text) <= most {
			break
		}
	}

	return text
}

// group are resources of which the same is missing.
type group struct {
	verbs     string
	resources []string
}

// grouped are some lacks by what is missing, in their order.
func grouped(list []MissingRights) []group {
	var out []group

	for _, l := range list {
		var (
			names []string
			verbs = map[string][]string{}
		)

		for _, r := range l.Missing {
			name := l.Need.String()
			if _, sub := r.Split(); sub != "" {
				name += "/" + sub
			}

			if verbs[name] == nil {
				names = append(names, name)
			}

			verbs[name] = append(verbs[name], r.Verb)
		}

		for _, name := range names {
			do := and(verbs[name])

			i := slices.IndexFunc(out, func(g group) bool { return g.verbs == do })
			if i < 0 {
				i, out = len(out), append(out, group{verbs: do})
			}

			out[i].resources = append(out[i].resources, name)
		}
	}

	return out
}

// said names all resources of some groups but so many, and the number of these.
func said(groups []group, left int) string {
	parts, more := make([]string, 0, len(groups)), left

	for _, g := range slices.Backward(groups) {
		n := min(left, len(g.resources))
		left -= n

		if names := g.resources[:len(g.resources)-n]; len(names) > 0 {
			parts = append(parts, g.verbs+" "+strings.Join(names, ", "))
		}
	}

	slices.Reverse(parts)

	out := strings.Join(parts, "; ")
	if more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}

	return out
}

// Explain says what is missing of one resource, and returns the command that gives it. One that is only read
// may be that of an owner, of which nobody knows before.
func Explain(l MissingRights) (text, command string) {
	command = Remedy
	if len(l.Need.Only) > 0 {
		command = RemedyFor(l.Need.GroupResource)
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
