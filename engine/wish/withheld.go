// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// named is in each text of a record with places.
const named = "withheld:"

// Withheld are the places of a composed resource at which what is wished is held, as the annotation says. The error names that.
func Withheld(u *unstructured.Unstructured) (allowance.Withheld, error) {
	text := resource.Annotation(u, v1alpha1.AnnotationWish)
	if !strings.Contains(text, named) {
		return nil, nil //nolint:nilnil // Nothing is, which is no error.
	}

	var w written

	err := w.read(text)
	if err == nil && w.Version != version {
		err = errVersion
	}

	var out allowance.Withheld
	if err == nil {
		out, err = allowance.ReadWithheld(w.Withheld)
	}

	if err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	return out, nil
}

// WithWithheld is the text of a record, which may be empty, with the places at which what is wished of an object is held.
func WithWithheld(text string, of *unstructured.Unstructured, withheld allowance.Withheld) (string, error) {
	if len(withheld) == 0 && !strings.Contains(text, named) {
		return text, nil
	}

	w := written{Version: version, APIVersion: of.GetAPIVersion(), Kind: of.GetKind()}

	if text != "" {
		if err := w.read(text); err != nil {
			return text, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
		}
	}

	if w.Withheld = withheld.Record(); len(w.Withheld) == 0 && w.Leaves == "" {
		return "", nil
	}

	out, err := w.format()
	if err != nil {
		return text, fmt.Errorf("cannot write the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	return out, nil
}
