// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Successors finds composed resources that are to go, or to be of another kind, while another one is to stand for the same external
// object: one that is named by its place in a list moves up when one before it goes, and a Composition may name, or write, the
// same in another way. One that only observes it needs nobody's. It returns the name of the other of each, by the name of the one.
func Successors(observed, desired map[string]*unstructured.Unstructured, more identity.Fields) map[string]string {
	var out map[string]string

	for former, u := range observed {
		next := desired[former]
		if next != nil && next.GroupVersionKind().GroupKind() == u.GroupVersionKind().GroupKind() || !resource.IsManaged(u) {
			continue
		}

		for _, name := range slices.Sorted(maps.Keys(desired)) {
			if len(management.Acting(wanted(desired[name]))) == 0 || !identity.Same(u, desired[name], more) {
				continue
			}

			if out == nil {
				out = map[string]string{}
			}

			out[former] = name

			break
		}
	}

	return out
}
