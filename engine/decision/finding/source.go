// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Source is a policy, a window or an Enforcement that had a part in a decision.
type Source struct {
	// Kind of it.
	Kind string
	// Name of it; of an exception ENFORCEMENT/EXCEPTION.
	Name string
	// Generation it had; zero where that is not known.
	Generation int64
}

// String returns NAME@GENERATION.
func (s Source) String() string {
	if s.Generation == 0 {
		return s.Name
	}

	return fmt.Sprintf("%s@%d", s.Name, s.Generation)
}

// CompareSources orders sources by name, kind and generation.
func CompareSources(a, b Source) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Generation, b.Generation))
}

// Kind is the kind of what allowed a change.
func (f Finding) Kind() string {
	switch f.Rule {
	case RuleUpgrade:
		return v1alpha1.KindUpgrade
	case RuleException:
		return v1alpha1.KindEnforcement
	default:
		return v1alpha1.KindPolicy
	}
}

// Policies are those by which the change was decided: the one that allowed it, or
// those that would once what they lack is there.
func (f Finding) Policies() []Source {
	if f.Verdict != Unallowed {
		if f.Policy == "" {
			return nil
		}

		return []Source{{Kind: f.Kind(), Name: f.Policy, Generation: f.Generation}}
	}

	var out []Source

	for _, l := range f.Lacks {
		if s := l.source(); l.Policy != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}

	return out
}

// source is what lacks something.
func (l Lack) source() Source {
	s := Source{Kind: v1alpha1.KindPolicy, Name: l.Policy, Generation: l.Generation}
	if l.OfWindow() {
		s.Kind = v1alpha1.KindUpgrade
	}

	return s
}

// OfWindow reports whether it is an UpgradeAllowance that lacks it.
func (l Lack) OfWindow() bool { return l.What == policy.LackEdited || l.What == policy.LackWindow }

// SourceOfEnforcement names an Enforcement that had a part in a decision.
func SourceOfEnforcement(e *enforcement.Enforcement) Source {
	return Source{Kind: v1alpha1.KindEnforcement, Name: e.Name(), Generation: e.Generation()}
}
