// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Planting returns the scenarios whose objects hold credentials, by name. Each
// credential in them can be known by [Leaks].
func Planting() ([]Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}

	var out []Scenario

	for _, s := range all {
		if strings.HasPrefix(s.Name, "secret/") {
			out = append(out, s)
		}
	}

	return out, nil
}

// Leaks reports whether a text holds one of the credentials of such a scenario, as
// it is or as a Secret encodes it.
func Leaks(text string) bool {
	return strings.Contains(text, "planted-") || strings.Contains(text, "cGxhbnRlZC")
}

// Ours is what an object carries of Kausality's, as text.
func Ours(u *unstructured.Unstructured) string {
	var out strings.Builder

	for key, value := range u.GetAnnotations() {
		if strings.HasPrefix(key, v1alpha1.AnnotationPrefix) {
			out.WriteString(key + ": " + value + "\n")
		}
	}

	return out.String()
}
