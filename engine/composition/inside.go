// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// maxInsideValue is the most bytes of a value in what is said of it.
const maxInsideValue = 128

// inside says what of a managed resource is stored and has not reached the external
// object, and what it takes. Desired is what is applied of it.
func inside(observed, desired *unstructured.Unstructured) []string {
	list, err := gate.Insides(observed)
	if err != nil {
		return nil // Reported with the decision.
	}

	var lines []string

	for _, f := range list {
		want, wantErr := fieldpath.Pave(desired.Object).GetValue(f.Path.String())
		if wantErr == nil && change.Equal(want, f.Asked) {
			continue // It is put back now.
		}

		text := func(v any) string {
			if v == nil {
				return "(unset)"
			}

			return change.Text(mask.Value(f.Path, v, observed.Object), maxInsideValue)
		}

		remedy := fmt.Sprintf("%s stored it, and it is put back before the gate opens", f.User)
		if wantErr == nil && change.Equal(want, f.Stored) {
			remedy = fmt.Sprintf("no External Update is allowed for it, which %s asked for: have a policy allow that with it, and ask for it again", f.User)
		}

		lines = append(lines, fmt.Sprintf("%s: %s is %s, and %s outside: %s", describe(observed), f.Path, text(f.Stored), text(f.Asked), remedy))
	}

	return lines
}
