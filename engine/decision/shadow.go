// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Shadowed is a change that would be decided otherwise if what is in Shadow mode were
// enforced.
type Shadowed struct {
	// Finding on it, as it would be then.
	Finding finding.Finding

	// By is what in Shadow mode makes the difference.
	By InShadow
}

// InShadow is a policy in Shadow mode, or a condition of one.
type InShadow struct {
	// Policy that would allow the change, or not; empty where it is none.
	Policy string
	// Condition of it that is in Shadow mode, and does not hold; empty where the policy is
	// as a whole.
	Condition string
}

// shadow returns the changes of which something else would be found if what is in Shadow
// mode were enforced.
func shadow(in *input.Inputs, findings []finding.Finding) []Shadowed {
	var parent schema.GroupKind
	if in.Objects.Parent != nil {
		parent = in.Objects.Parent.GroupVersionKind().GroupKind()
	}

	set := in.Authority.Policies.Shadow(in.Objects.GroupKind(), parent)
	if set == nil {
		return nil
	}

	enforced := *in
	enforced.Authority = in.Authority.InShadow(set)
	enforced.Problems = enforced.Authority.Problems

	var out []Shadowed

	for _, would := range rule.Judge(&enforced).Findings {
		is := finding.Finding{Verdict: finding.Ungoverned}
		if i := slices.IndexFunc(findings, func(f finding.Finding) bool { return change.Compare(f.Change, would.Change) == 0 }); i >= 0 {
			is = findings[i]
		}

		if is.Verdict != would.Verdict {
			out = append(out, Shadowed{would, difference(enforced.Authority, is, would)})
		}
	}

	return out
}

// difference is what in Shadow mode has a change be found otherwise by this judge, which
// enforces it, than it is.
func difference(auth *authority.Authority, is, would finding.Finding) InShadow {
	switch {
	case would.Verdict == finding.Allowed:
		return InShadow{Policy: would.Policy}
	case is.Verdict == finding.Ungoverned:
		return InShadow{Policy: whole(auth.Policies, would.Lacks)}
	}

	// A condition that does not hold: of the policy that allows it, or of one that forbids it.
	for _, name := range append([]string{is.Policy}, policiesOf(is.Lacks)...) {
		if condition := shadowCondition(auth, auth.Policies.ByName(name)); condition != "" {
			return InShadow{name, condition}
		}
	}

	if is.Policy != "" {
		return InShadow{Policy: is.Policy}
	}

	return InShadow{Policy: whole(auth.Policies, would.Lacks)}
}

// whole is the first policy that lacks are of and that is in Shadow mode as a whole, or else
// the first one; empty where they are of none.
func whole(policies *policy.Set, lacks []finding.Lack) string {
	names := policiesOf(lacks)

	i := slices.IndexFunc(names, func(name string) bool {
		p := policies.ByName(name)

		return p != nil && p.InShadow()
	})
	if i < 0 && len(names) == 0 {
		return ""
	}

	return names[max(i, 0)]
}

func policiesOf(lacks []finding.Lack) []string {
	var out []string

	for _, l := range lacks {
		if l.Policy != "" {
			out = append(out, l.Policy)
		}
	}

	return out
}

// shadowCondition is the condition in Shadow mode of a policy that does not hold, with its
// own parameters or those of a binding that names the user; empty for none, and for no
// policy.
func shadowCondition(auth *authority.Authority, p *policy.Policy) string {
	if p == nil {
		return ""
	}

	if v := auth.Evaluate(p); !v.Met {
		return p.ShadowCondition(v.Condition)
	}

	for _, b := range auth.BindingsOf(p) {
		if !auth.BoundBy(b) {
			continue
		}

		if name := p.ShadowCondition(auth.EvaluateBinding(p, b).Condition); name != "" {
			return name
		}
	}

	return ""
}

// ShadowText says of a change that would be decided otherwise without Shadow mode how, and
// by what, for a person.
func ShadowText(s Shadowed) string {
	switch s.Finding.Verdict {
	case finding.Allowed:
		by := string(s.Finding.Rule)
		if s.Finding.Policy != "" {
			by = fmt.Sprintf("%s %q", s.Finding.Kind(), s.Finding.Policy)
		}

		return fmt.Sprintf("%s would be allowed by %s", s.Finding.Change.Field, by)
	case finding.Ungoverned:
		out := s.Finding.Change.Field + " would not be governed"
		if s.By.Condition != "" {
			out += fmt.Sprintf(": policy %q: condition %q does not hold", s.By.Policy, s.By.Condition)
		}

		return out
	default:
		// What makes the difference is first: the rest may be cut.
		f := s.Finding
		f.Lacks = slices.Clone(s.Finding.Lacks)
		slices.SortStableFunc(f.Lacks, func(a, b finding.Lack) int { return s.By.rank(a) - s.By.rank(b) })

		return fmt.Sprintf("%s would not be allowed: %s", f.Change.Field, change.Text(strings.TrimSpace(f.Missing()), maxCauseText))
	}
}

// rank is zero of a lack of the policy, and one of others.
func (s InShadow) rank(l finding.Lack) int {
	if s.Policy != "" && l.Policy == s.Policy {
		return 0
	}

	return 1
}
