// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// maxIdle is after how many runs in a row a status that is another one each time,
// such as one with the time in it, no longer counts.
const maxIdle = 3

// Reporting is what a pipeline wishes of its XR's status: what it composes in
// the next round may follow from that.
type Reporting struct {
	// Pending says what of it is new; empty for nothing.
	Pending string
	// Hash is [v1alpha1.Progress.Status], and Idle what goes with it.
	Hash string
	Idle int
}

// Report compares the status that a pipeline wishes with what it wished in the
// last run, and with what is stored: neither what the API server makes of it
// nor conditions count. Desired is the XR as the pipeline wants it, a partial
// object; idle is true where nothing else changes in this run.
func Report(xr, desired *unstructured.Unstructured, idle bool) Reporting {
	want := maps.Clone(resource.Map(desired.Object, "status"))
	delete(want, "conditions")

	if len(want) == 0 {
		return Reporting{}
	}

	last, _ := resource.ProgressOf(xr)
	known := last.Status != ""
	out := Reporting{Hash: fmt.Sprintf("%016x", wish.Hash(want))}

	if known && last.Status == out.Hash {
		return out
	}

	field, changes := firstChange(want, resource.Map(xr.Object, "status"), "status")
	if !changes {
		return out
	}

	if idle && known {
		out.Idle = min(last.Idle+1, maxIdle)

		if last.Idle >= maxIdle {
			return out
		}
	}

	out.Pending = Describe(xr) + " is about to report a new " + field

	return out
}

// firstChange finds the first field, in order, of a partial value that another
// one does not have.
func firstChange(want, have map[string]any, at string) (field string, changes bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		path := at + "." + key

		if below, ok := want[key].(map[string]any); ok {
			if field, changes := firstChange(below, resource.Map(have, key), path); changes {
				return field, true
			}

			continue
		}

		if !change.Equal(want[key], have[key]) {
			return path, true
		}
	}

	return "", false
}
