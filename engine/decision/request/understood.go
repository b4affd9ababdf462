// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Records of a form that this version does not know allow nothing, and hold the object as it is. A user may remove such an
// annotation, which nothing overwrites; that of a gate only while it is closed, for the API server guards it.

// readers read the records on an object, by annotation.
func readers() map[string]func(*unstructured.Unstructured) error {
	return map[string]func(*unstructured.Unstructured) error{
		v1alpha1.AnnotationAllowances: func(u *unstructured.Unstructured) error {
			_, err := allowance.Parse(u)

			return err
		},
		v1alpha1.AnnotationTrace: func(u *unstructured.Unstructured) error {
			_, err := allowance.ParseTrace(u)

			return err
		},
		v1alpha1.AnnotationRecord: func(u *unstructured.Unstructured) error {
			rec, err := allowance.ParseRecord(u)
			if err == nil {
				_, err = allowance.ReadWithheld(rec.Withheld)
			}

			return err
		},
		v1alpha1.AnnotationHeld: func(u *unstructured.Unstructured) error {
			_, err := allowance.ParseHeld(u)

			return err
		},
		v1alpha1.AnnotationApproved: func(u *unstructured.Unstructured) error {
			_, err := allowance.ParseApproved(u)

			return err
		},
		v1alpha1.AnnotationGate: func(u *unstructured.Unstructured) error {
			_, err := managed.ParseRecord(u)

			return err
		},
		v1alpha1.AnnotationDesiredPolicies: func(u *unstructured.Unstructured) error {
			_, err := management.ParseDesired(u)

			return err
		},
		v1alpha1.AnnotationInitialized: resource.CheckInitialized,
		v1alpha1.AnnotationWish: func(u *unstructured.Unstructured) error {
			if _, err := wish.Parse(u); err != nil {
				return err
			}

			_, err := wish.Withheld(u)

			return err
		},
	}
}

// A Misread is an annotation of an object that is not understood.
type Misread struct {
	// Key of the annotation.
	Key string
	// Err says why, and names the annotation.
	Err error
}

// NotUnderstood are the annotations of an object that are not, by key.
func NotUnderstood(u *unstructured.Unstructured) []Misread {
	var out []Misread

	all := readers()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := all[key](u); err != nil {
			out = append(out, Misread{Key: key, Err: err})
		}
	}

	for _, key := range managed.UnknownAnnotations(u) {
		out = append(out, Misread{Key: key, Err: managed.UnknownError(key)})
	}

	return out
}

// Understood reports whether an annotation of ours of an object is.
func Understood(u *unstructured.Unstructured, key string) bool {
	read, ok := readers()[key]

	return v1alpha1.KnownAnnotation(key) && (!ok || read(u) == nil)
}
