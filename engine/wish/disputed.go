// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Disputed reports whether a field of a composed resource is not known to be as its Composition wishes: a change of it is held, or
// the recorded wish is another value than is stored, which is the default where nothing is. A record that cannot be read
// disputes it.
func Disputed(u *unstructured.Unstructured, def any, at ...string) bool {
	withheld, err := Withheld(u)
	if err != nil {
		return true
	}

	if _, held := withheld.At(at); held {
		return true
	}

	r, err := Parse(u)
	if err != nil || r == nil {
		return err != nil
	}

	leaf := root
	for _, name := range at {
		leaf = leaf.under(name)
	}

	wished, known := r.get(leaf)
	stored, ok := resource.Value(u.Object, at...)

	if !ok {
		stored = def
	}

	return known && wished != hashOf(stored)
}
