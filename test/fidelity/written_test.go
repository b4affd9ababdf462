// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"context"
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

	return cmp.Diff(timeless(before).Object, timeless(after).Object)
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

// entryOf tells the entries of managedFields apart.
func entryOf(e any) string {
	m := asMap(e)

	return asText(m["manager"]) + "/" + asText(m["operation"]) + "/" + asText(m["subresource"]) + "/" + asText(m["apiVersion"])
}

// countedAnyway says whether nothing but the generation of an object is another
// one, and it is too where the wish is applied without the function. The API
// server counts up the generation of some kinds where an empty map is applied
// that is not stored.
func (p *play) countedAnyway(ctx context.Context, before, after *unstructured.Unstructured) (bool, error) {
	same := after.DeepCopy()
	same.SetGeneration(before.GetGeneration())

	if written(before, same) != "" {
		return false, nil
	}

	predicted, err := p.predict(ctx, p.wish, before)
	if err != nil {
		return false, err
	}

	return predicted.GetGeneration() != before.GetGeneration() && !different(before, predicted), nil
}
