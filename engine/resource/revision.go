// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// RevisionKind is the kind of CompositionRevisions, which say by what steps an
// XR is composed. Its Composition says the same only until somebody changes it.
func RevisionKind() schema.GroupKind {
	return schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "CompositionRevision"}
}

// RunsFunction reports whether a step of a CompositionRevision is our function's:
// one that runs a function of one of some names, or that has an input of our
// group.
func RunsFunction(revision *unstructured.Unstructured, names []string) bool {
	return slices.ContainsFunc(List(revision.Object, "spec", "pipeline"), func(step any) bool {
		m, _ := step.(map[string]any)

		return slices.Contains(names, String(m, "functionRef", "name")) ||
			strings.HasPrefix(String(m, "input", "apiVersion"), v1alpha1.Group+"/")
	})
}

// FunctionsOf returns the names of the functions that the steps of a CompositionRevision run.
func FunctionsOf(revision *unstructured.Unstructured) []string {
	var out []string

	for _, step := range List(revision.Object, "spec", "pipeline") {
		m, _ := step.(map[string]any)
		if name := String(m, "functionRef", "name"); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}

	return out
}

// ComposesFor returns the kind of XRs that a CompositionRevision is for.
func ComposesFor(revision *unstructured.Unstructured) schema.GroupKind {
	return schema.FromAPIVersionAndKind(
		String(revision.Object, "spec", "compositeTypeRef", "apiVersion"), String(revision.Object, "spec", "compositeTypeRef", "kind"),
	).GroupKind()
}

// RevisionOf returns the name of the CompositionRevision that an XR is composed
// by; empty where Crossplane has not chosen one.
func RevisionOf(xr *unstructured.Unstructured) string {
	if name := String(xr.Object, "spec", "crossplane", "compositionRevisionRef", "name"); name != "" {
		return name
	}

	return String(xr.Object, "spec", "compositionRevisionRef", "name")
}

// trimRevision leaves of a CompositionRevision what the functions above read:
// the inputs of its steps are templates of everything it composes.
func trimRevision(spec map[string]any) {
	keep(spec, "compositeTypeRef", "pipeline")

	for _, step := range List(spec, "pipeline") {
		m, _ := step.(map[string]any)
		keep(m, "functionRef", "input")
		keep(Map(m, "input"), "apiVersion")
	}
}

// RunsFor reports whether the function runs for an XR; revisions are the names of
// CompositionRevisions, with whether they run it. Where the revision that the XR
// is composed by is not among them, the condition shows that the function set on
// it.
func RunsFor(xr *unstructured.Unstructured, revisions map[string]bool) bool {
	if runs, known := revisions[RevisionOf(xr)]; known {
		return runs
	}

	_, ran := ConditionOf(xr, v1alpha1.ConditionKausality)

	return ran && IsComposite(xr)
}
