// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Crossplane takes away what a function said of an XR whenever a run fails. So what is withheld is recorded with the wishes, on the
// composed resources; what is not created, on another one of them.

// unknownCause reports whether an XR may be composed by another revision of its Composition than when nothing was held last: what it
// asks for does not follow from an edit then.
func unknownCause(xr *unstructured.Unstructured) bool {
	_, known := resource.StateOf(xr)

	return !known || condition.NewRevision(xr)
}

// stampWithheld records at which places changes of a resource are held.
func stampWithheld(out *Result) {
	if out.Desired == nil || !out.Asked {
		return
	}

	text, err := wish.WithWithheld(resource.Annotation(out.Desired, v1alpha1.AnnotationWish), out.Desired, out.Withheld)
	if err != nil {
		out.Problems = append(out.Problems, inObserved(out.Desired, err))

		return
	}

	annotate(out.Desired, v1alpha1.AnnotationWish, text)
}

// WithheldCreations are the places of what an XR does not create, as the composed resources that are there have them on record.
func WithheldCreations(observed map[string]*unstructured.Unstructured) allowance.Withheld {
	var out allowance.Withheld

	for _, u := range observed {
		if withheld, err := wish.Withheld(u); err == nil { // Reported with the decision.
			out = out.And(withheld)
		}
	}

	return out
}

// ListedOf are the changes that the state of an XR lists as held, by the composed resource. Where Crossplane could not apply one,
// nothing else says since when they are.
func ListedOf(xr *unstructured.Unstructured) map[string][]allowance.Listed {
	state, ok := resource.StateOf(xr)
	if !ok {
		return nil
	}

	out := map[string][]allowance.Listed{}

	for _, c := range state.Changes {
		if c.At == "" || c.Cause != nil && c.Cause.Type == v1alpha1.CauseDrift {
			continue // A repair: nobody asked for it.
		}

		out[c.ComposedResource] = append(out[c.ComposedResource], allowance.Listed{Place: placeListed(c), At: c.At})
	}

	return out
}

// placeListed is where a change is that is listed. In a list that is the list: its elements may be elsewhere by now.
func placeListed(c v1alpha1.HeldChange) allowance.Place {
	if c.Field == v1alpha1.MutationCreate {
		return request.PlaceOfCreation(c.ComposedResource)
	}

	path, err := fieldpath.Parse(c.Field)
	if err != nil {
		return allowance.Place{c.Field}
	}

	out := allowance.Place{}

	for _, s := range path {
		if s.Type == fieldpath.SegmentIndex {
			break
		}

		out = append(out, s.Field)
	}

	return out
}

// RecordCreations records what is not created of an XR on the first of its composed resources that is there and is applied.
func RecordCreations(observed map[string]*unstructured.Unstructured, outcomes map[string]Result) []error {
	var withheld allowance.Withheld

	for name, out := range outcomes {
		if out.Desired == nil && observed[name] == nil {
			withheld = withheld.And(out.Withheld)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(observed)) {
		out, ok := outcomes[name]
		if !ok || out.Desired == nil || len(withheld) == 0 {
			continue
		}

		all, err := wish.Withheld(out.Desired)
		if err != nil {
			return []error{inObserved(out.Desired, err)}
		}

		text, err := wish.WithWithheld(resource.Annotation(out.Desired, v1alpha1.AnnotationWish), out.Desired, all.And(withheld))
		if err != nil {
			return []error{inObserved(out.Desired, err)}
		}

		annotate(out.Desired, v1alpha1.AnnotationWish, text)

		return nil
	}

	return nil
}
