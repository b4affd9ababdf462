// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
)

// counterparts finds for each wished element of a list the stored one, or -1: by
// the keys that the list is merged by, where there are any.
func (p place) counterparts(wish, stored []any) []int {
	if keys := p.fields.Keys(); len(keys) > 0 {
		return managedfields.Match(wish, stored, keys, p.fields)
	}

	return counterparts(wish, stored)
}

// counterparts finds for each wished element of a list the stored one, or -1: by
// what distinguishes its elements, or by place.
func counterparts(wish, stored []any) []int {
	places := make(map[string]int, len(stored))
	for j, segment := range segments(stored) {
		places[segment] = j
	}

	out := make([]int, len(wish))
	found := false

	for i, segment := range segments(wish) {
		out[i] = -1
		if j, ok := places[segment]; ok {
			out[i], found = j, true
		}
	}

	if found {
		return out
	}

	for i := range out { // Told apart otherwise now.
		if i < len(stored) {
			out[i] = i
		}
	}

	return out
}

// indexText is the index of an element: the stored one's, where there is one.
func indexText(wished, stored int) string {
	if stored >= 0 {
		wished = stored
	}

	return strconv.Itoa(wished)
}

// sameValue reports whether a leaf has the value that is stored. What is empty is
// as good as absent, unless somebody took it away, or it was not wished before. A
// list whose elements are their own keys may have more.
func (c *Comparison) sameValue(wish, stored any, p place, away bool) bool {
	if change.Equal(wish, stored) || stored == nil && empty(wish) && !away && !c.free() {
		return true
	}

	if w, ok := wish.([]any); ok {
		s, _ := stored.([]any)

		return len(w) > 0 && p.fields.Values() && subsequence(w, s) && !p.drops(w, s)
	}

	return c.quantity() && sameQuantity(wish, stored)
}

// drops reports whether the manager has elements of a stored list that are no longer
// wished.
func (p place) drops(wish, stored []any) bool {
	wished := change.Find(wish)

	return slices.ContainsFunc(stored, func(e any) bool {
		return p.fields.Own.Members.Has(managedfields.Value(e)) && wished(e) < 0
	})
}

// free reports whether the field that is compared is an entry of a map whose keys are
// anybody's choice: there an empty value is not as good as none.
func (c *Comparison) free() bool {
	if len(c.at) < 2 || c.at[len(c.at)-1].Type != fieldpath.SegmentField {
		return false
	}

	switch above := c.at[len(c.at)-2]; above.Field {
	case "data", "binaryData":
		return len(c.at) == 2
	case "labels", "annotations", "matchLabels", "nodeSelector", "parameters":
		return above.Type == fieldpath.SegmentField
	default:
		return false
	}
}

// empty reports whether a value is as good as none.
func empty(v any) bool {
	switch t := v.(type) {
	case nil:
		return true
	case string:
		return t == ""
	case bool:
		return !t
	case int64:
		return t == 0
	case float64:
		return t == 0
	case map[string]any:
		return len(t) == 0
	case []any:
		return len(t) == 0
	default:
		return false
	}
}

// subsequence reports whether a list has all elements of another one, in their
// order.
func subsequence(part, list []any) bool {
	for _, e := range list {
		if len(part) > 0 && change.Equal(part[0], e) {
			part = part[1:]
		}
	}

	return len(part) == 0
}

// quantities are the fields of built-in kinds that are quantities, or maps of
// them.
//
// Source: k8s.io/api core/v1, autoscaling/v2, node/v1: fields of type
// resource.Quantity and ResourceList.
func quantities() []string {
	return []string{"limits", "requests", "hard", "capacity", "podFixed", "sizeLimit", "divisor", "averageValue"}
}

// ofQuantities are those of [quantities] whose maps have quantities below
// them, at the places where policies set bounds.
//
// Source: k8s.io/api core/v1, LimitRangeItem.
func ofQuantities() []string {
	return []string{"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}
}

// unstorable are the fields of built-in kinds whose zero values the API server
// never stores, wherever they are: nobody can take them away.
//
// Source: k8s.io/api apps/v1, core/v1: fields with omitempty that are no pointers.
func unstorable() []string {
	return []string{
		"hostIPC", "hostNetwork", "hostPID", "paused", "publishNotReadyAddresses", "stdin", "stdinOnce", "tty",
		"healthCheckNodePort", "hostPort", "initialDelaySeconds", "minReadySeconds", "nodePort",
		"clusterIP", "externalName", "loadBalancerIP", "priorityClassName", "serviceAccountName", "subPath", "workingDir",
	}
}

// unstored reports whether the zero value of the field that is compared is never
// stored.
func (c *Comparison) unstored() bool {
	const variable = 3 // Of a path, env[0].value.

	last := c.at[len(c.at)-1]
	if !c.builtIn() || last.Type != fieldpath.SegmentField || c.free() {
		return false
	}

	return slices.Contains(unstorable(), last.Field) ||
		last.Field == "value" && len(c.at) > variable && c.at[len(c.at)-variable].Field == "env"
}

// quantity reports whether the field that is compared is a quantity of a built-in
// kind.
func (c *Comparison) quantity() bool {
	if !c.builtIn() {
		return false
	}

	names := quantities()
	if c.in.Stored.GetKind() == "LimitRange" {
		names = slices.Concat(names, ofQuantities())
	}

	last := c.at[len(c.at)-1]
	if last.Type == fieldpath.SegmentField && slices.Contains(names, last.Field) || len(c.at) == 1 {
		return true
	}

	above := c.at[len(c.at)-2]

	return above.Type == fieldpath.SegmentField && slices.Contains(names, above.Field)
}

// sameQuantity reports whether two values are one quantity, written otherwise.
func sameQuantity(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))

	return errX == nil && errY == nil && x.Cmp(y) == 0
}
