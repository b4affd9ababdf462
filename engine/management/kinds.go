// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are kinds of managed resources. A kind * stands for all kinds of its
// group, and a group * for all groups.
type Kinds []schema.GroupKind

const anything = "*"

// AllKinds are all there are.
func AllKinds() Kinds { return Kinds{{Group: anything, Kind: anything}} }

var errKind = errors.New("it has to be KIND.GROUP, *.GROUP or *")

// ParseKinds reads kinds as KIND.GROUP, *.GROUP, or * for all. The error names
// the first that is none of these.
func ParseKinds(texts []string) (Kinds, error) {
	out := make(Kinds, 0, len(texts))

	for _, text := range texts {
		if text == anything {
			out = append(out, AllKinds()...)

			continue
		}

		gk := schema.ParseGroupKind(text)
		if gk.Kind == "" || gk.Group == "" || strings.Contains(gk.Group, anything) || gk.Kind != anything && strings.Contains(gk.Kind, anything) {
			return nil, fmt.Errorf("cannot read kind %q: %w", text, errKind)
		}

		out = append(out, gk)
	}

	return out, nil
}

// Texts are what [ParseKinds] reads; nil for none.
func (k Kinds) Texts() []string {
	var out []string

	for _, gk := range k {
		if gk.Group == anything {
			out = append(out, anything)
		} else {
			out = append(out, gk.String())
		}
	}

	return out
}

// Has reports whether a kind is among them.
func (k Kinds) Has(gk schema.GroupKind) bool {
	return slices.ContainsFunc(k, func(have schema.GroupKind) bool {
		return (have.Kind == anything || have.Kind == gk.Kind) && (have.Group == anything || have.Group == gk.Group)
	})
}
