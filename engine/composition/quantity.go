// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// quantities are the fields of built-in kinds that are quantities, or maps of
// them.
//
// Source: k8s.io/api core/v1, autoscaling/v2, node/v1: fields of type
// resource.Quantity and ResourceList.
func quantities() []string {
	return []string{"limits", "requests", "hard", "capacity", "podFixed", "sizeLimit", "divisor", "averageValue"}
}

// keepQuantities gives the quantities of a built-in kind, where they stay the
// same, the form they have: the API server stores 1000m as 1.
func keepQuantities(u, observed *unstructured.Unstructured) {
	group := u.GroupVersionKind().Group
	if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
		return
	}

	if spec, changed := sameForm(u.Object["spec"], observed.Object["spec"], false); changed {
		u.Object["spec"] = spec
	}
}

// sameForm returns a value in which quantities that are equal to another one's
// have its form, and whether any had not. It copies what it changes.
func sameForm(want, have any, quantity bool) (any, bool) {
	switch w := want.(type) {
	case map[string]any:
		return sameForms(w, have, quantity)
	case []any:
		return sameElements(w, have)
	default:
		same := quantity && sameQuantity(want, have)
		if same {
			want = have
		}

		return want, same
	}
}

func sameForms(want map[string]any, have any, quantity bool) (any, bool) {
	h, _ := have.(map[string]any)

	var out map[string]any

	for key, v := range want {
		same, changed := sameForm(v, h[key], quantity || slices.Contains(quantities(), key))
		if changed && out == nil {
			out = maps.Clone(want)
		}

		if changed {
			out[key] = same
		}
	}

	if out == nil {
		return want, false
	}

	return out, true
}

// sameElements matches elements by their names, as lists with quantities do,
// or else by index.
func sameElements(want []any, have any) (any, bool) {
	h, _ := have.([]any)

	var out []any

	for i, v := range want {
		same, changed := sameForm(v, counterpart(v, h, i), false)
		if changed && out == nil {
			out = slices.Clone(want)
		}

		if changed {
			out[i] = same
		}
	}

	if out == nil {
		return want, false
	}

	return out, true
}

func counterpart(e any, list []any, i int) any {
	m, _ := e.(map[string]any)
	if name, ok := m["name"].(string); ok {
		for _, other := range list {
			if o, _ := other.(map[string]any); o["name"] == name {
				return other
			}
		}

		return nil
	}

	if i < len(list) {
		return list[i]
	}

	return nil
}

// sameQuantity says whether two values are one quantity, written otherwise.
func sameQuantity(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))

	return errX == nil && errY == nil && x.Cmp(y) == 0
}
