// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// FunctionRevisionKind is the kind of the versions of functions that Crossplane has installed.
func FunctionRevisionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}
}

const (
	// labelPackage names the Function that a FunctionRevision is of.
	//
	// Source: github.com/crossplane/crossplane/apis/v2/pkg/v1, LabelParentPackage.
	labelPackage = "pkg.crossplane.io/package"
	// lately is for how long an update of a function may be why something is held.
	lately = 24 * time.Hour
	// maxFunctions is how many of them a cause names.
	maxFunctions = 5
)

// Updates are the names of FunctionRevisions that run in place of others, of functions of a pipeline, and
// were made within a day before a time: the newest first.
func Updates(revisions []unstructured.Unstructured, functions []string, before time.Time) []string {
	var found []*unstructured.Unstructured

	for i := range revisions {
		u := &revisions[i]
		made := u.GetCreationTimestamp().Time

		if resource.String(u.Object, "spec", "desiredState") == "Active" && resource.Int(u.Object, "spec", "revision") > 1 &&
			slices.Contains(functions, u.GetLabels()[labelPackage]) && !made.After(before) && before.Sub(made) <= lately {
			found = append(found, u)
		}
	}

	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})

	out := make([]string, 0, len(found))
	for _, u := range found[:min(len(found), maxFunctions)] {
		out = append(out, u.GetName())
	}

	return out
}

// Unexplained are the XRs whose pipelines ask for what a status lists and the one before did not, and nothing
// else is known of why: for each its changes, by their places.
func Unexplained(status, previous *v1alpha1.PendingChangeStatus) map[v1alpha1.ObjectReference][]int {
	known := make(map[string]bool, len(previous.Changes))
	for _, e := range previous.Changes {
		known[e.Digest] = true
	}

	out := map[v1alpha1.ObjectReference][]int{}

	for i, e := range status.Changes {
		if e.Cause.Type == v1alpha1.CausePipeline && e.Parent != nil && (e.Digest == "" || !known[e.Digest]) {
			out[*e.Parent] = append(out[*e.Parent], i)
		}
	}

	return out
}
