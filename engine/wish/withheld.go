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
	w, err := partOf(u, named)

	var out allowance.Withheld
	if err == nil {
		out, err = allowance.ReadWithheld(w.Withheld)
	}

	if err != nil {
		return nil, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	return out, nil
}

// partOf reads the record on an object where it has a part by a name; an empty one where it has not.
func partOf(u *unstructured.Unstructured, part string) (written, error) {
	var w written

	text := resource.Annotation(u, v1alpha1.AnnotationWish)
	if !strings.Contains(text, part) {
		return w, nil
	}

	err := w.read(text)
	if err == nil && w.Version != version {
		err = errVersion
	}

	return w, err
}

// WithWithheld is the text of a record, which may be empty, with the places at which what is wished of an object is held.
func WithWithheld(text string, of *unstructured.Unstructured, withheld allowance.Withheld) (string, error) {
	if len(withheld) == 0 && !strings.Contains(text, named) {
		return text, nil
	}

	return withPart(text, of, func(w *written) { w.Withheld = withheld.Record() })
}

// withPart is the text of a record of an object, which may be empty, with a part that is set.
func withPart(text string, of *unstructured.Unstructured, set func(*written)) (string, error) {
	w := written{Version: version, APIVersion: of.GetAPIVersion(), Kind: of.GetKind()}

	if text != "" {
		if err := w.read(text); err != nil {
			return text, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationWish, err)
		}
	}

	set(&w)

	if len(w.Withheld) == 0 && len(w.Repairs) == 0 && w.Leaves == "" {
		return "", nil
	}

	out, err := w.format()
	if err != nil {
		return text, fmt.Errorf("cannot write the annotation %s: %w", v1alpha1.AnnotationWish, err)
	}

	return out, nil
}
