// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Objects returns all objects of the corpus, in order.
func Objects() ([]*unstructured.Unstructured, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}

	var out []*unstructured.Unstructured

	for _, s := range all {
		for _, u := range []*unstructured.Unstructured{s.Old, s.New, s.Parent, s.Namespace, s.Object} {
			if u != nil {
				out = append(out, u)
			}
		}
	}

	return out, nil
}

// Annotations returns every different value that one of Kausality's annotations
// has in the corpus, to start a fuzz test from.
func Annotations() ([]string, error) {
	objects, err := Objects()
	if err != nil {
		return nil, err
	}

	var out []string

	for _, u := range objects {
		for key, value := range u.GetAnnotations() {
			if strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
				out = append(out, value)
			}
		}
	}

	return unique(out), nil
}

// Paths returns every different field path that the policies of the corpus
// hold, to start a fuzz test from.
func Paths() ([]string, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}

	var out []string

	for _, s := range all {
		for _, p := range s.Policies {
			out = append(out, p.Spec.Match.Fields...)
			out = append(out, p.Spec.Match.Capture...)

			for _, a := range p.Spec.Allow {
				out = append(out, a.Mutations...)
			}
		}
	}

	return unique(out), nil
}

func unique(list []string) []string {
	slices.Sort(list)

	return slices.Compact(list)
}
