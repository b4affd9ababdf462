// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
)

// maskAnnotations masks what our own annotations of an object quote, as earlier versions of
// Kausality did: they are masked where they are written now. The masked object is a copy of
// the object.
func (m *masking) maskAnnotations(masked Object, of map[string]any) {
	texts := annotations(masked)
	if len(texts) == 0 {
		return
	}

	u := &unstructured.Unstructured{Object: of}

	held, err := allowance.ParseHeld(u) // It is masked as it is read.
	stored, other := allowance.ParseStored(u)

	if err == nil && other == nil && (maskEdits(stored, of) || slices.ContainsFunc(held, quotes)) {
		texts[v1alpha1.AnnotationHeld] = allowance.FormatHeld(stored, held)
	}
}

// quotes reports whether a value of a held change is masked.
func quotes(h v1alpha1.HeldChange) bool { return h.From == mask.Text || h.To == mask.Text }

// maskEdits masks the values of edits; false where there is nothing to mask.
func maskEdits(list []v1alpha1.HeldChange, of map[string]any) bool {
	masked := false

	for i := range list {
		e := &list[i]

		path, err := fieldpath.Parse(e.Field)
		if err == nil && e.From != "" && mask.Hides(path, e.From, of) {
			e.From, e.Stored.From, e.Masked, masked = "", "", true, true
		}
	}

	return masked
}
