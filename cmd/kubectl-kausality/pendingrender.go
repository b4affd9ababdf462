// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// maxMembers is how many objects of a class are named for people.
const maxMembers = 3

// render writes what waits for people: a block for each object that they edit, or for each
// class of changes.
func (d pendingDocument) render(now time.Time) string {
	var out strings.Builder

	if d.Classes != nil {
		for i, c := range d.Classes {
			if i > 0 {
				out.WriteString("\n")
			}

			c.render(&out)
		}

		return out.String()
	}

	for i, e := range d.Pending {
		if i > 0 {
			out.WriteString("\n")
		}

		e.render(&out, now)
	}

	return out.String()
}

// render writes a block.
func (p pendingEntry) render(out *strings.Builder, now time.Time) {
	root := p.Object.reference()

	fmt.Fprintf(out, "%s: %s%s\n", rootText(root), counted(int(p.Total), "change"), askedText(p.Requesters))

	if since := sinceText(p.Since, now); since != "" {
		fmt.Fprintf(out, "  waits %s\n", since)
	}

	if !p.Current {
		out.WriteString("  the list is from before the pipeline failed\n")
	}

	for _, e := range p.Changes {
		if e.Destroys {
			fmt.Fprintf(out, "  DESTROYS %s\n", destroyedText(e, root))
		}
	}

	for _, e := range p.Changes {
		p.renderChange(out, e, root)
	}

	if more := int(p.Total) - len(p.Changes); more > 0 {
		fmt.Fprintf(out, "  - %d more, too many to list\n", more)
	}

	p.renderRefused(out)

	if p.Required > 1 {
		fmt.Fprintf(out, "  %d people have to approve each of them\n", p.Required)
	}

	if len(p.Changes) == 0 {
		out.WriteString("  nothing is held, and something that was approved is being made\n")

		return
	}

	if slices.ContainsFunc(p.Changes, func(e v1alpha1.HeldChange) bool { return unapprovable(e) == "" }) {
		fmt.Fprintf(out, "  to let it through: %s\n", p.Command)
	}
}

// renderRefused says what was refused because of changes that wait: what was last, and how much there is.
func (p pendingEntry) renderRefused(out *strings.Builder) {
	for _, r := range p.Refused[:min(len(p.Refused), maxMembers)] {
		what := fmt.Sprintf("%s of %s %s, to %s", r.Field, r.Ref.Kind, r.Ref.Name, r.User)
		fmt.Fprintf(out, "  refused because of it: %s\n", visible(what))
	}

	if more := len(p.Refused) - maxMembers; more > 0 {
		fmt.Fprintf(out, "  refused because of it: %d more\n", more)
	}
}

func askedText(requesters []string) string {
	if len(requesters) == 0 {
		return ""
	}

	names := make([]string, len(requesters))
	for i, r := range requesters {
		names[i] = visible(r)
	}

	return ", requested by " + strings.Join(names, ", ")
}

// destroyedText says what a change destroys.
func destroyedText(e v1alpha1.HeldChange, root v1alpha1.ObjectReference) string {
	if wholeObject(e.Field) {
		return refText(e, root) + " is " + e.Field + "d"
	}

	return "by a change of " + refText(e, root) + ": " + visible(e.Field)
}

func (p pendingEntry) renderChange(out *strings.Builder, e v1alpha1.HeldChange, root v1alpha1.ObjectReference) {
	fmt.Fprintf(out, "  - %s %s\n", refText(e, root), heldText(e))
	fmt.Fprintf(out, "      requested by %s\n", causeText(e.Cause))

	if len(e.Follows) > 0 {
		fmt.Fprintf(out, "      then the provider does: %s\n", visible(strings.Join(e.Follows, ", ")))
	}

	if e.Missing != "" {
		fmt.Fprintf(out, "      by policy: %s\n", visible(e.Missing))
	}

	if why := unapprovable(e); why != "" {
		fmt.Fprintf(out, "      cannot be approved: %s\n", why)
	}

	for _, a := range p.Approvals {
		if a.Digest == e.Digest && a.Digest != "" {
			fmt.Fprintf(out, "      %s\n", approvalText(a))
		}
	}
}

// approvalText says what there is of an approval.
func approvalText(a v1alpha1.PendingApproval) string {
	by := visible(a.User)
	if a.Decision == v1alpha1.DecisionBreakGlass {
		by += " alone (" + string(a.Decision) + ")"
	}

	out := fmt.Sprintf("ChangeApproval %s by %s: %s", visible(a.Name), by, a.State)
	if a.Message != "" {
		out += ", " + visible(a.Message)
	}

	return out
}

// render writes a class: how many there are, of what, and the first objects.
func (c pendingClass) render(out *strings.Builder) {
	e := v1alpha1.HeldChange{Field: c.Field, From: c.From, To: c.To}

	fmt.Fprintf(out, "%s of %s: %s\n", counted(c.Count, "change"), visible(c.Kind), heldText(e))

	if c.Destroys {
		out.WriteString("  DESTROYS something\n")
	}

	fmt.Fprintf(out, "  requested by %s\n", causeText(c.Cause))

	for _, m := range c.Members[:min(len(c.Members), maxMembers)] {
		root := m.Object.reference()
		fmt.Fprintf(out, "  - %s, below %s\n",
			refText(v1alpha1.HeldChange{Ref: m.Ref, ComposedResource: m.ComposedResource}, root), rootText(root))
	}

	if more := len(c.Members) - maxMembers; more > 0 {
		fmt.Fprintf(out, "  - and %d more\n", more)
	}
}

// withoutIndices is a field with [*] for each index of a list.
func withoutIndices(field string) string {
	path, err := fieldpath.Parse(field)
	if err != nil {
		return field
	}

	path = slices.Clone(path)
	for i := range path {
		if path[i].Type == fieldpath.SegmentIndex {
			path[i] = fieldpath.Segment{Type: fieldpath.SegmentField, Field: "*"}
		}
	}

	return path.String()
}
