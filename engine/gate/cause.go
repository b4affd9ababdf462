// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"maps"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Causes says for a person who asked for what some allowances allow, each once:
// the initiator and, in brackets, the policy and what was attested on the way.
func Causes(list []v1alpha1.Allowance) string {
	var out []string

	for _, a := range list {
		if text := cause(a); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return strings.Join(out, ", ")
}

// Initiators are those who asked for what some allowances allow, each once.
func Initiators(list []v1alpha1.Allowance) []string {
	out := []string{}

	for _, a := range list {
		if !slices.Contains(out, a.Initiator) {
			out = append(out, a.Initiator)
		}
	}

	return out
}

// Attestations are the values that were captured on the way to some allowances, by
// field path.
func Attestations(list ...v1alpha1.Allowance) map[string]string {
	out := map[string]string{}

	for _, a := range list {
		for _, hop := range a.Trace {
			maps.Copy(out, hop.Attestations)
		}
	}

	return out
}

func cause(a v1alpha1.Allowance) string {
	var details []string

	if a.Policy != "" {
		details = append(details, "policy "+a.Policy)
	}

	attested := Attestations(a)

	for _, key := range slices.Sorted(maps.Keys(attested)) {
		details = append(details, key+"="+attested[key])
	}

	if len(details) == 0 {
		return a.Initiator
	}

	return a.Initiator + " (" + strings.Join(details, ", ") + ")"
}
