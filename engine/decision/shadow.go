// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

// shadowed are the findings that would be others if what is in Shadow mode were
// enforced, as they would be then.
func (j *judge) shadowed(findings []Finding) []Finding {
	var parent schema.GroupKind
	if j.Parent != nil {
		parent = j.Parent.GroupVersionKind().GroupKind()
	}

	set := j.Policies.Shadow(j.groupKind(), parent)
	if set == nil {
		return nil
	}

	f := *j.facts
	f.Policies, f.problems, f.costs = set, &problems{}, &costs{}
	// What fails here has not failed for what is enforced.
	f.permitted = &permissions{
		answers: maps.Clone(j.permissions.answers), failed: j.permissions.failed,
		questions: questions{answers: maps.Clone(j.permissions.questions.answers)},
	}
	f.bindingCosts = newBindingCosts()

	var out []Finding

	for _, would := range newJudge(&f).judgeAll().findings {
		i := slices.IndexFunc(findings, func(is Finding) bool { return change.Compare(is.Change, would.Change) == 0 })
		if i < 0 && would.Verdict == Ungoverned || i >= 0 && findings[i].Verdict == would.Verdict {
			continue
		}

		out = append(out, would)
	}

	return out
}

// ShadowPolicy is the policy by which a change is decided otherwise in Shadow mode: the one that
// would allow it, or that it would first lack something of; empty where there is none.
func ShadowPolicy(f Finding) string {
	if f.Verdict == Allowed {
		return f.Policy
	}

	for _, l := range f.Lacks {
		if l.Policy != "" {
			return l.Policy
		}
	}

	return ""
}

// ShadowText says of a change that is decided otherwise in Shadow mode how, and by what,
// for a person.
func ShadowText(f Finding) string {
	if f.Verdict == Allowed {
		by := string(f.Rule)
		if f.Policy != "" {
			by = fmt.Sprintf("%s %q", f.kind(), f.Policy)
		}

		return fmt.Sprintf("%s would be allowed by %s", f.Change.Field, by)
	}

	if f.Verdict == Ungoverned {
		return f.Change.Field + " would not be governed"
	}

	return fmt.Sprintf("%s would not be allowed: %s", f.Change.Field, change.Text(strings.TrimSpace(f.Missing()), maxCauseText))
}
