// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// render writes what is known about one object.
func render(u *unstructured.Unstructured, doc *traceDocument, all bool) string {
	var out strings.Builder

	fmt.Fprintf(&out, "%s (%s, generation %d)\n", object(u), u.GetAPIVersion(), resource.Generation(u))

	renderTrace(&out, u, doc.Changes, all)
	renderGate(&out, doc.Gate)
	renderWaits(&out, doc.Waits)
	renderAllowances(&out, doc.Allowances)
	renderStored(&out, doc)
	renderHeld(&out, doc)

	for i, p := range doc.Problems {
		if i == 0 {
			out.WriteString("\n")
		}

		fmt.Fprintf(&out, "Not shown: %s\n", p)
	}

	return out.String()
}

func object(u *unstructured.Unstructured) string {
	name := u.GetName()
	if ns := u.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}

	return u.GetKind() + " " + name
}

// renderTrace writes the recorded changes, newest first, each as a tree from
// the person to the field.
func renderTrace(out *strings.Builder, u *unstructured.Unstructured, entries []v1alpha1.TraceEntry, all bool) {
	if len(entries) == 0 {
		out.WriteString("\nNo change of it is recorded: it was made before Kausality, or no AllowancePolicy is about it.\n")

		if ref, ok := resource.ParentOf(u); ok {
			fmt.Fprintf(out, "Its parent is %s %s.\n", ref.Kind, ref.Name)
		}

		return
	}

	shown := entries
	if !all {
		// Changes that one write made belong together.
		last := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return e.Generation != entries[0].Generation })
		if last > 0 {
			shown = entries[:last]
		}
	}

	for _, e := range shown {
		renderEntry(out, e)
	}

	if rest := len(entries) - len(shown); rest > 0 {
		fmt.Fprintf(out, "\nEarlier changes are recorded too (%d): show them with --all.\n", rest)
	}
}

func renderEntry(out *strings.Builder, e v1alpha1.TraceEntry) {
	how := ""
	if e.By != "" {
		how = ", by " + e.By
	}

	if e.Repaired != nil {
		how += ", repaired at " + e.Repaired.UTC().Format(time.RFC3339)
	}

	fmt.Fprintf(out, "\n%s of generation %d%s, %s\n%s\n", e.Field, e.Generation, how, begunBy(e.Trace), e.Initiator)

	for i, hop := range e.Trace {
		indent := strings.Repeat("   ", i)

		if hop.Kind == approvalKind().Kind {
			renderApproval(out, indent, hop)

			continue
		}

		fmt.Fprintf(out, "%s└─ %s %s  %s  (generation %d)\n", indent, hop.Kind, nameOf(hop), hop.Field, hop.Generation)

		for _, k := range sortedKeys(hop.Attestations) {
			fmt.Fprintf(out, "%s      %s = %s\n", indent, k, hop.Attestations[k])
		}
	}
}

// nameOf names a hop, with its namespace where that is another one than the object's.
func nameOf(hop v1alpha1.Hop) string {
	if hop.Namespace == nil || *hop.Namespace == "" {
		return hop.Name
	}

	return *hop.Namespace + "/" + hop.Name
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}

	sort.Strings(out)

	return out
}

// renderGate writes whether the provider may act.
func renderGate(out *strings.Builder, rec *v1alpha1.GateRecord) {
	if rec == nil {
		return
	}

	since := rec.Since.UTC().Format(time.RFC3339)

	switch rec.State {
	case v1alpha1.GateOpen:
		fmt.Fprintf(out, "\nGate: open for %s since %s\n", strings.Join(rec.Actions, ", "), since)
	case v1alpha1.GateUngated:
		why := "the provider does not support management policies"
		if rec.Audit {
			why = "the Composition runs the function in mode Audit"
		}

		fmt.Fprintf(out, "\nGate: none, for %s\n", why)
	default:
		fmt.Fprintf(out, "\nGate: closed since %s\n", since)
	}

	for _, w := range rec.Windows {
		fmt.Fprintf(out, "UpgradeAllowance %s opened it\n", w.Name)
	}
}

// renderAllowances writes what may still follow.
func renderAllowances(out *strings.Builder, list []v1alpha1.Allowance) {
	if len(list) == 0 {
		return
	}

	out.WriteString("\nMay still follow:\n")

	for _, a := range list {
		what := a.Kind + " " + a.Mutation
		if allowance.External(a) {
			what = "external " + strings.Join(a.Mutations, ", ")
		}

		fmt.Fprintf(out, "- %s, %s (generation %d%s)\n", what, givenBy(a), a.Generation, byPolicy(a))
	}
}

// renderStored writes what is stored and is not what was allowed, and who stored it.
func renderStored(out *strings.Builder, doc *traceDocument) {
	renderList(out, "Stored, and not allowed", doc.Stored, stamp.DescribeStored,
		"not applied. Revert it, or ask someone with permission to apply it")
}

// renderList writes values with one thing in common, and what becomes of them.
func renderList(out *strings.Builder, head string, list []storedEntry, describe func(v1alpha1.HeldChange) string, advice string) {
	for i, s := range list {
		if i == 0 {
			fmt.Fprintf(out, "\n%s:\n", head)
		}

		what := advice
		if s.Approvals > 0 {
			what = fmt.Sprintf("not applied until %s it. Approve it, or revert it", authority.OthersApprove(s.Approvals))
		}

		text := describe(v1alpha1.HeldChange{Field: s.Field, From: s.Allowed, To: s.Value})
		fmt.Fprintf(out, "- %s%s: %s, %s\n", of(s.Object), text, storedText(s), what)
	}
}

// of names what is not the object itself.
func of(ref *objectRef) string {
	if ref == nil {
		return ""
	}

	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}

	return ref.Kind + " " + name + ": "
}

func storedText(s storedEntry) string {
	var since time.Time
	if s.Since != nil {
		since = s.Since.Time
	}

	text := stamp.StoredBy(s.User, since)
	if s.Manager != "" {
		text += " (by " + s.Manager + ")"
	}

	return text
}

// renderHeld writes what is held on the object, and of what is made for it.
func renderHeld(out *strings.Builder, doc *traceDocument) {
	if len(doc.Held)+doc.HeldMore == 0 && doc.Message == "" {
		return
	}

	out.WriteString("\nHeld:\n")

	for _, e := range doc.Held {
		about := of(e.Object)
		if e.ComposedResource != "" {
			about = e.Object.Kind + " of composed resource " + e.ComposedResource + ": "
		}

		fmt.Fprintf(out, "- %s%s: %s\n", about, describeHeld(e), e.Reason)

		if e.User != "" {
			fmt.Fprintf(out, "  requested by %s\n", e.User)
		}

		if e.Asked != nil {
			fmt.Fprintf(out, "  the desired value was written by %s\n", writerText(e.Asked))
		}

		if e.Stored != nil {
			fmt.Fprintf(out, "  the stored value was written by %s\n", writerText(e.Stored))
		}
	}

	if doc.HeldMore > 0 {
		fmt.Fprintf(out, "- %d more, too many to list\n", doc.HeldMore)
	}

	if doc.Message != "" {
		fmt.Fprintf(out, "- %s\n", doc.Message)
	}
}

// describeHeld says what is held, without why.
func describeHeld(e heldEntry) string {
	switch {
	case e.Field == v1alpha1.MutationCreate && e.Passed, e.Field == v1alpha1.MutationDelete && e.Passed:
		return "(audit) " + e.Field + "d"
	case e.Field == v1alpha1.MutationCreate || e.Field == v1alpha1.MutationDelete:
		return "not " + e.Field + "d"
	case e.Passed:
		return "(audit) " + decision.DescribePassed(e.change())
	default:
		return decision.Describe(e.change())
	}
}

func writerText(s *storedBy) string {
	if s.Time == nil {
		return s.Manager
	}

	return s.Manager + " at " + s.Time.UTC().Format(time.RFC3339)
}
