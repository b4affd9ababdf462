// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Told is the message of an object's Kausality condition, which may be cut, and line by line all that is held of it and of
// what it composes: as sentences, and as field, value and desired value.
func Told(u *unstructured.Unstructured) string {
	c, _ := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	list, _, _ := condition.Reported(u)
	list = append(condition.HeldOn(u), list...)
	lines := append(make([]string, 0, 2*len(list)+1), c.Message)

	for _, h := range list {
		lines = append(lines, h.String(), h.Change.Field+" "+cmp.Or(h.Change.From, "(unset)")+" → "+cmp.Or(h.Change.To, "(unset)"))
	}

	return strings.Join(lines, "\n")
}
