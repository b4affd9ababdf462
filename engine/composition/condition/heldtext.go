// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// maxShownValue limits the characters of a value in a message.
const maxShownValue = 24

// String says what is held of which resource, from which value to which, and why, in one line: all of it, whatever its length.
func (h Held) String() string {
	c := h.Change
	if h.whole() {
		return h.subject() + h.because(h.reasons())
	}

	return fmt.Sprintf("%s of %s (%s → %s)", c.Field, h.Resource, message.OrUnset(c.From), message.OrUnset(c.To)) + h.because(h.reasons())
}

// inWords is String with field and values as short as they are shown.
func (h Held) inWords() string { return h.values() + h.because(h.reasons()) }

// inFew is that in fewer words.
func (h Held) inFew() string { return h.values() + h.because(h.briefly()) }

// inFewer is that with the first reason alone.
func (h Held) inFewer() string {
	why := h.briefly()

	return h.values() + h.because(why[:min(1, len(why))])
}

// reasons are those of the decision, or else the one of the record.
func (h Held) reasons() []string {
	if len(h.Why) == 0 && h.Change.Missing != "" {
		return []string{h.Change.Missing}
	}

	return h.Why
}

// briefly are the reasons in fewer words, where there are any.
func (h Held) briefly() []string {
	if len(h.Briefly) == 0 {
		return h.reasons()
	}

	return h.Briefly
}

// Event is an event about a held change of an XR: what is held, why, and the command that lists it.
func (h Held) Event(xr *unstructured.Unstructured) string {
	state := "Held: "
	if h.Passed {
		state = "Audit, would be held: "
	}

	command := howToList(xr, []Held{h})

	room := message.Room(state, command)

	return message.First(
		message.Then(state+h.inWords(), command), message.Then(state+h.inFew(), command), message.Then(state+h.inFewer(), command),
		message.Then(state+h.start(room), command),
		message.Then(state+h.subject(), command), state+h.values())
}

// values is what is held, with the values.
func (h Held) values() string {
	if h.whole() {
		return h.subject()
	}

	return fmt.Sprintf("%s (%s → %s)", h.subject(), shownValue(h.Change.From), shownValue(h.Change.To))
}

// whole reports whether what is held is no field: a creation, a deletion, or more changes than are listed.
func (h Held) whole() bool {
	_, more := allowance.MoreHeld(h.Change)

	return more || h.Change.Field == v1alpha1.MutationCreate || h.Change.Field == v1alpha1.MutationDelete
}

// subject is what is held of which resource.
func (h Held) subject() string {
	n, more := allowance.MoreHeld(h.Change)

	switch c := h.Change; {
	case more:
		return fmt.Sprintf("%d more changes of %s", n, h.Resource)
	case c.Field == v1alpha1.MutationCreate:
		return "creation of " + h.Resource
	case c.Field == v1alpha1.MutationDelete:
		return "deletion of " + h.Resource
	default:
		return shownField(c.Field) + " of " + h.Resource
	}
}

// start is as much as fits into so many characters, if that is some of the reason.
func (h Held) start(most int) string {
	const least = 20

	values := h.values()

	out := message.CutWords(h.inFewer(), most)
	if utf8.RuneCountInString(out) < utf8.RuneCountInString(values)+least {
		return values
	}

	return out
}

// because says why it is held, after what is.
func (h Held) because(reasons []string) string {
	why := strings.Join(reasons, "; ")

	switch {
	case why == "":
		return ""
	case h.OfEdit:
		return ", " + why
	default:
		return "; " + why
	}
}

// shownField is a field without what all managed resources begin with.
func shownField(field string) string {
	for _, prefix := range []string{"spec.forProvider.manifest.", "spec.forProvider."} {
		if below, ok := strings.CutPrefix(field, prefix); ok && below != "" {
			return below
		}
	}

	return field
}

func shownValue(s string) string { return message.Cut(message.OrUnset(s), maxShownValue) }

// howToList is the command that shows the held changes of an XR: pending by its Claim, where it has one; audit for mode Audit; trace for
// changes that nobody can approve, because they were reverted in an XR without anything above it.
func howToList(xr *unstructured.Unstructured, held []Held) string {
	gvk, name, namespace := xr.GroupVersionKind(), xr.GetName(), xr.GetNamespace()
	if claim, ok := resource.ClaimOf(xr); ok {
		gvk, name, namespace = schema.FromAPIVersionAndKind(claim.APIVersion, claim.Kind), claim.Name, claim.Namespace
	}

	_, below := resource.ParentOf(xr)
	object := " " + strings.ToLower(gvk.Kind) + "." + gvk.Group + "/" + name
	out := "kubectl kausality trace" + object

	switch {
	case slices.ContainsFunc(held, func(h Held) bool { return !h.Passed && (!h.OnXR || below) }):
		out = "kubectl kausality pending" + object
	case slices.ContainsFunc(held, func(h Held) bool { return h.Passed }):
		out = "kubectl kausality audit"
	}

	if namespace != "" {
		out += " -n " + namespace
	}

	return out
}
