// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// reduced is what of the policies in force may decide a request: those about the kinds of the object and
// its parent, and those that they name. Whether others do is for the caller to find out.
func reduced(full *decisionlog.InForce, d *decisionlog.Decision) (*decisionlog.InForce, error) {
	raw, err := json.Marshal([]any{d.Old, d.New, d.Parent})
	if err != nil {
		return nil, fmt.Errorf("cannot encode objects: %w", err)
	}

	named := func(name string) bool { return strings.Contains(string(raw), name) }
	kinds := []string{kindOf(d.Old), kindOf(d.New), kindOf(d.Parent)}
	out := &decisionlog.InForce{Header: full.Header}

	for _, p := range full.Policies {
		about := append(slices.Clone(p.Spec.Match.Kinds), p.Spec.Match.Kind)
		if named(p.GetName()) || slices.ContainsFunc(about, func(k string) bool { return slices.Contains(kinds, k) }) {
			out.Policies = append(out.Policies, p)
		}
	}

	has := func(policy string) bool {
		return slices.ContainsFunc(out.Policies, func(p v1alpha1.AllowancePolicy) bool { return p.GetName() == policy })
	}

	for _, b := range full.Bindings {
		if has(b.Spec.Policy) {
			out.Bindings = append(out.Bindings, b)
		}
	}

	for _, w := range full.Windows {
		text, err := json.Marshal(w.Spec)
		if err != nil {
			return nil, fmt.Errorf("cannot encode window: %w", err)
		}

		if named(w.GetName()) || slices.ContainsFunc(kinds, func(k string) bool { return k != "" && strings.Contains(string(text), `"`+k+`"`) }) {
			out.Windows = append(out.Windows, w)
		}
	}

	for _, e := range full.Enforcements {
		if about(&e, d) {
			out.Enforcements = append(out.Enforcements, e)
		}
	}

	return digested(out)
}

// about reports whether a rule of an Enforcement names the resource.
func about(e *v1alpha1.Enforcement, d *decisionlog.Decision) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }

	for _, r := range e.Spec.Match.ResourceRules {
		if has(r.APIGroups, d.Resource.Group) && slices.ContainsFunc(r.Resources, func(name string) bool {
			return name == "*" || d.Resource.Resource == "" || strings.HasPrefix(name, d.Resource.Resource)
		}) {
			return true
		}
	}

	return false
}

func kindOf(o decisionlog.Object) string {
	kind, _ := o["kind"].(string)

	return kind
}
