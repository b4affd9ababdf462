// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// written is what a write made of an object; nothing where it changed nothing.
//
// The API server sorts managedFields by time. Where it normalises what is
// applied, such as a default in a list that is replaced as a whole, an apply that
// changes nothing counts as a new one of its manager, and comes to stand behind
// the others' of an earlier second: that is stored, once. It says nothing of the
// object, and happens to everybody who applies.
func written(before, after *unstructured.Unstructured) string {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return ""
	}

	was, is := timeless(before), timeless(after)

	// The API server counts up the generation of these where an empty list or map
	// is applied that it does not store: each time, by whomever.
	if before.GetKind() == "NetworkPolicy" {
		was.SetGeneration(is.GetGeneration())
	}

	return cmp.Diff(was.Object, is.Object)
}

// timeless is an object without what says when it was written: managedFields
// are in the order of their managers.
func timeless(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	out.SetResourceVersion("")

	list := asList(asMap(out.Object["metadata"])["managedFields"])
	for _, e := range list {
		delete(asMap(e), "time")
	}

	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(entryOf(a), entryOf(b)) })

	return out
}

// entryOf distinguishes the entries of managedFields.
func entryOf(e any) string {
	m := asMap(e)

	return asText(m["manager"]) + "/" + asText(m["operation"]) + "/" + asText(m["subresource"]) + "/" + asText(m["apiVersion"])
}
