// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Verbs of the systems behind Crossplane's managed resources.
const (
	ActionCreate = "Create"
	ActionUpdate = "Update"
	ActionDelete = "Delete"
)

// Verbs are all of them.
func Verbs() []string { return []string{ActionCreate, ActionUpdate, ActionDelete} }

// CheckVerbs checks the verbs of External permissions. Other systems have
// different verbs, so that on most kinds only what resembles one of
// Crossplane's is reported, and on managed resources every other one.
func CheckVerbs(allow []v1alpha1.Permission, managed bool) []Finding {
	var out []Finding

	for i, perm := range allow {
		if Child(perm) {
			continue
		}

		for j, verb := range perm.Mutations {
			if wrong := wrongVerb(verb, managed); wrong != "" {
				at := field.NewPath("spec", "allow").Index(i).Child("mutations").Index(j)
				out = append(out, found(ExternalVerb, at.String(), wrong))
			}
		}
	}

	return out
}

func wrongVerb(verb string, managed bool) string {
	known := Verbs()
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
