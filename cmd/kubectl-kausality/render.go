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
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// render writes what is known about one object. The error names an annotation
// that does not parse.
func render(u *unstructured.Unstructured, all bool) (string, error) {
	var out strings.Builder

	fmt.Fprintf(&out, "%s (%s, generation %d)\n", object(u), u.GetAPIVersion(), resource.Generation(u))

	sections := []func(*strings.Builder, *unstructured.Unstructured) error{
		func(out *strings.Builder, u *unstructured.Unstructured) error { return renderTrace(out, u, all) },
		renderGate, renderAllowances, renderHeld,
	}

	for _, section := range sections {
		if err := section(&out, u); err != nil {
			return "", fmt.Errorf("%s: %w", object(u), err)
		}
	}

	return out.String(), nil
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
func renderTrace(out *strings.Builder, u *unstructured.Unstructured, all bool) error {
	entries, err := allowance.ParseTrace(u)
	if err != nil {
		return err //nolint:wrapcheck // Names the annotation.
	}

	if len(entries) == 0 {
		out.WriteString("\nNo change of it is recorded: it was made before Kausality, or no AllowancePolicy is about it.\n")

		if ref, ok := resource.ParentOf(u); ok {
			fmt.Fprintf(out, "Its parent is %s %s.\n", ref.Kind, ref.Name)
		}

		return nil
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

	return nil
}

func renderEntry(out *strings.Builder, e v1alpha1.TraceEntry) {
	fmt.Fprintf(out, "\n%s of generation %d, asked for by\n%s\n", e.Field, e.Generation, e.Initiator)

	for i, hop := range e.Trace {
		indent := strings.Repeat("   ", i)
		fmt.Fprintf(out, "%s└─ %s %s  %s  (generation %d)\n", indent, hop.Kind, hop.Name, hop.Field, hop.Generation)

		for _, k := range sortedKeys(hop.Attestations) {
			fmt.Fprintf(out, "%s      %s = %s\n", indent, k, hop.Attestations[k])
		}
	}
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
func renderGate(out *strings.Builder, u *unstructured.Unstructured) error {
	rec, err := allowance.ParseGate(u)
	if err != nil || rec == nil {
		return err //nolint:wrapcheck // Names the annotation.
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

		fmt.Fprintf(out, "\nGate: none since %s, for %s\n", since, why)
	default:
		fmt.Fprintf(out, "\nGate: closed since %s\n", since)
	}

	for _, w := range rec.Windows {
		fmt.Fprintf(out, "UpgradeAllowance %s opened it\n", w.Name)
	}

	return nil
}

// renderAllowances writes what may still follow.
func renderAllowances(out *strings.Builder, u *unstructured.Unstructured) error {
	list, err := allowance.Parse(u)
	if err != nil {
		return err //nolint:wrapcheck // Names the annotation.
	}

	list = allowance.Unconsumed(u, list)
	if len(list) == 0 {
		return nil
	}

	out.WriteString("\nMay still follow:\n")

	for _, a := range list {
		what := a.Kind + " " + a.Mutation
		if allowance.External(a) {
			what = "external " + strings.Join(a.Mutations, ", ")
		}

		fmt.Fprintf(out, "- %s, asked for by %s (generation %d%s)\n", what, a.Initiator, a.Generation, byPolicy(a))
	}

	return nil
}

// renderHeld writes what is held on the object, or below it.
func renderHeld(out *strings.Builder, u *unstructured.Unstructured) error {
	list, err := allowance.ParseHeld(u)
	if err != nil {
		return err //nolint:wrapcheck // Names the annotation.
	}

	c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	if len(list) == 0 && c.Reason != v1alpha1.ReasonHeld {
		return nil
	}

	out.WriteString("\nHeld:\n")

	for _, h := range list {
		if n, ok := allowance.MoreHeld(h); ok {
			fmt.Fprintf(out, "- %d more, %s\n", n, h.Reason)
		} else {
			fmt.Fprintf(out, "- %s: %s\n", decision.Describe(h), h.Reason)
		}
	}

	if len(list) == 0 {
		fmt.Fprintf(out, "- %s\n", c.Message)
	}

	return nil
}
