// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"context"
	"maps"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
)

// refused says why the API server refuses as invalid what it refuses without the
// function too; nothing where it would not. It may after it took it: applied
// once, a map that is wished empty goes with the last of its fields, and applied
// again, it is there and empty. To what is immutable it may not even be added.
func (p *play) refused(ctx context.Context, wish map[string]any, rsp *fnv1.RunFunctionResponse, err error) string {
	stored, failed := p.c.observe(ctx)
	if failed != nil || !apierrors.IsInvalid(err) {
		return ""
	}

	if fields, err := managedfields.Of(stored, p.c.manager()); err == nil && forsaken(stored.Object, fields) {
		return "lists that the API server empties, for nobody manages what is left in them"
	}

	if _, err = p.predict(ctx, wish, stored); !apierrors.IsInvalid(err) {
		return ""
	}

	if p.asked {
		return "changed wishes that the API server takes once"
	}

	full := rsp.GetDesired().GetResources()[resourceName].GetResource().AsMap()
	dropEmpty(full)

	if _, err = p.predict(ctx, full, stored); err != nil {
		return ""
	}

	return "empty maps that the API server does not add to what is immutable"
}

// forsaken reports whether a part of an object has a list of which a manager had
// other elements than those that are left: zero values of theirs, which are not
// stored, are still in managedFields. With the last of these the API server drops
// all elements that have no manager, such as what a webhook put in.
func forsaken(m map[string]any, fields managedfields.Fields) bool {
	for key, v := range m {
		below := fields.Below(managedfields.Field(key))
		if below.Own.Empty() {
			continue
		}

		list, keys := asList(v), below.Keys()
		has := func(e any) bool {
			pe := managedfields.Element(e, keys)

			return below.Has(pe) || !below.Below(pe).Own.Empty()
		}

		if len(list) > 0 && len(keys) > 0 && !slices.ContainsFunc(list, has) {
			return true
		}

		if forsaken(asMap(v), below) {
			return true
		}
	}

	return false
}

// dropEmpty drops the maps that are empty.
func dropEmpty(m map[string]any) {
	maps.DeleteFunc(m, func(_ string, v any) bool {
		inner, ok := v.(map[string]any)
		dropEmpty(inner)

		return ok && len(inner) == 0
	})
}

// different reports whether what is gated of two objects differs.
func different(a, b *unstructured.Unstructured) bool { return difference(a, b) != "" }

func difference(a, b *unstructured.Unstructured) string {
	if a == nil || b == nil {
		return ""
	}

	return cmp.Diff(compared(a), compared(b))
}

// compared is what is gated of an object, less nulls, which say that there is
// nothing, and less what the API server draws lots for.
func compared(u *unstructured.Unstructured) map[string]any {
	out := gated(runtime.DeepCopyJSON(u.Object))
	dropNulls(out)

	if u.GetKind() != "Service" {
		return out
	}

	spec := asMap(out["spec"])
	delete(spec, "healthCheckNodePort")

	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}

	for _, e := range asList(spec["ports"]) {
		delete(asMap(e), "nodePort")
	}

	return out
}

// applied is what was applied once as it is once it is applied again: a map or a
// list that is wished empty goes with the last that was in it, or is null then,
// and is empty after. So what is empty is left out.
func applied(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	dropHollow(asMap(out.Object["spec"]))

	for key, v := range out.Object {
		if key != "spec" && key != "metadata" && dropHollow(v) {
			delete(out.Object, key)
		}
	}

	return out
}

// dropHollow drops what is empty in a value, and reports whether nothing is left.
func dropHollow(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, e any) bool { return dropHollow(e) })

		return len(v) == 0
	case []any:
		for _, e := range v {
			dropHollow(e)
		}

		return len(v) == 0
	default:
		return v == nil
	}
}

// dropNulls drops the nulls of maps.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, e any) bool {
			dropNulls(e)

			return e == nil
		})
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}

// byName is an object with all elements of lists that have names in their order:
// where others' stand among those that were put back is all the same.
func byName(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	sortByName(out.Object)

	return out
}

func sortByName(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			sortByName(e)
		}
	case []any:
		for _, e := range v {
			sortByName(e)
		}

		slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(asText(asMap(a)["name"]), asText(asMap(b)["name"])) })
	}
}
