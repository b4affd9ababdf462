// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package lack

import (
	"fmt"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// lackingOf says why bindings that name the user do not let them start a chain by a policy.
func lackingOf(auth *authority.Authority, p *policy.Policy, bindings []*policy.Binding) []string {
	var (
		out  []string
		more int
	)

	for _, b := range bindings {
		if !policy.MayInitiate(b.Subjects(), auth.User) {
			continue
		}

		if len(out) == finding.MaxRefused {
			more++

			continue
		}

		missing := "Crossplane, its providers, Kausality and Kubernetes' own controllers initiate nothing by one"
		if auth.BoundBy(b) {
			missing = auth.EvaluateBinding(p, b).Missing
		}

		out = append(out, fmt.Sprintf("AllowanceBinding %q names them, but %s", b.Name(), missing))
	}

	if more > 0 {
		out = append(out, fmt.Sprintf("so do %d more that do not let them", more))
	}

	return out
}

// LackingSubject says why the user may not start a chain by a policy, and who may.
func LackingSubject(auth *authority.Authority, p *policy.Policy) string {
	bindings := auth.BindingsOf(p)
	out := authority.OnlySome(authority.WhoMay(auth, p, bindings), auth.User.Name)

	if p.Bindable() && len(bindings) == 0 {
		return out + ": " + authority.LackingBinding(auth.Objects, p)
	}

	var why []string
	if p.RequiresBinding() && !auth.Bound(p, bindings) {
		why = append(why, authority.LackingBinding(auth.Objects, p)+" for anyone")
	}

	if text := auth.LackingPermission(p); text != "" {
		why = append(why, text)
	}

	why = append(why, lackingOf(auth, p, bindings)...)

	if len(why) > 0 {
		out += ": " + strings.Join(why, "; ")
	}

	return out
}
