// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// verbs are those of the systems behind Crossplane's managed resources.
func verbs() []string { return []string{"Create", "Update", "Delete"} }

// CheckExternal checks the verbs of External permissions. Other systems have
// different verbs, so that on most kinds only what resembles one of
// Crossplane's is reported, and on managed resources every other one.
func CheckExternal(allow []v1alpha1.Permission, managed bool) []v1alpha1.TypeCheckingWarning {
	var out []v1alpha1.TypeCheckingWarning

	for i, perm := range allow {
		if perm.Relation != v1alpha1.RelationExternal {
			continue
		}

		for j, verb := range perm.Mutations {
			if warning := checkVerb(verb, managed); warning != "" {
				at := field.NewPath("spec", "allow").Index(i).Child("mutations").Index(j)
				out = append(out, v1alpha1.TypeCheckingWarning{Field: at.String(), Warning: warning})
			}
		}
	}

	return out
}

func checkVerb(verb string, managed bool) string {
	known := verbs()
	if slices.Contains(known, verb) {
		return ""
	}

	like := Alike(verb, known)

	switch {
	case len(like) > 0:
		return fmt.Sprintf("%s: did you mean %s? Verbs are compared letter by letter, and no gate opens for this one",
			verb, strings.Join(like, " or "))
	case managed:
		return fmt.Sprintf("%s: the gates of managed resources open for %s only", verb, strings.Join(known, ", "))
	default:
		return ""
	}
}
