// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/explain"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// TestAnExplanationSaysWhatIsDecidedAndWhy of every scenario: each finding is there, what
// allowed it is reported to hold, and what it lacks not to.
func TestAnExplanationSaysWhatIsDecidedAndWhy(t *testing.T) {
	t.Parallel()

	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range all {
		if s.Request == nil {
			continue
		}

		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()

			req, _ := s.Decision()
			d := decision.Decide(req)

			x, err := explain.Explain(explain.Inquiry{Request: req})
			if err != nil {
				if len(d.Problems) == 0 {
					t.Fatal(err)
				}

				return
			}

			if diff := cmp.Diff(verdicts(d.Findings), verdicts(x.Changes)); diff != "" {
				t.Fatalf("what is decided, -decided +explained:\n%s", diff)
			}

			for _, f := range x.Changes {
				explains(t, x, f)
			}
		})
	}
}

// verdicts are what findings say.
func verdicts(list []finding.Finding) [][4]string {
	out := make([][4]string, len(list))
	for i, f := range list {
		out[i] = [4]string{f.Change.Field, string(f.Verdict), string(f.Rule), f.Policy + f.Missing()}
	}

	return out
}

// explains checks that an explanation has what led to a finding.
func explains(t *testing.T, x explain.Explanation, f finding.Finding) {
	t.Helper()

	switch f.Rule {
	case finding.RuleInitiate:
		p := byName(x.Policies, f.Policy)
		if p == nil || !p.Met || !p.Initiates || !slices.ContainsFunc(p.Subjects, func(s explain.ExplainedSubject) bool { return s.User && s.Subject.MayInitiate }) {
			t.Errorf("%s is allowed by policy %q: %+v", f.Change.Field, f.Policy, p)
		}
	case finding.RuleAllowance:
		if !slices.ContainsFunc(x.Allowances, func(a explain.ExplainedAllowance) bool {
			return a.Allowance.Policy == f.Policy && a.Missing == "" && slices.Contains(a.Covers, f.Change.Field)
		}) {
			t.Errorf("%s is allowed by an allowance of policy %q: %+v", f.Change.Field, f.Policy, x.Allowances)
		}
	case finding.RuleUpgrade:
		if !slices.ContainsFunc(x.Windows, func(w explain.ExplainedWindow) bool {
			return w.UpgradeAllowance.GetName() == f.Policy && w.Missing == "" && slices.Contains(w.Covers, f.Change.Field)
		}) {
			t.Errorf("%s is allowed by window %q: %+v", f.Change.Field, f.Policy, x.Windows)
		}
	case finding.RuleException:
		if !slices.ContainsFunc(x.Enforcements, func(e explain.ExplainedEnforcement) bool {
			return e.Governs && slices.ContainsFunc(e.Exceptions, func(x explain.ExplainedException) bool {
				return e.Enforcement.Name()+"/"+x.Exception.Name == f.Policy && x.Missing == "" && slices.Contains(x.Covers, f.Change.Field)
			})
		}) {
			t.Errorf("%s is excepted by %q: %+v", f.Change.Field, f.Policy, x.Enforcements)
		}
	default:
	}

	for _, l := range f.Lacks {
		p := byName(x.Policies, l.Policy)
		if p == nil {
			continue
		}

		switch l.What {
		case policy.LackCEL, policy.LackSelector, policy.LackParameter:
			if p.Met || !slices.ContainsFunc(p.Results, func(r policy.Result) bool { return r.Outcome != policy.OutcomeMet && !r.Shadow }) {
				t.Errorf("%s lacks %q: %+v", f.Change.Field, l.Text, p.Results)
			}
		case policy.LackSubject:
			if p.Initiates || p.Missing == "" {
				t.Errorf("%s lacks %q: initiates %t, missing %q", f.Change.Field, l.Text, p.Initiates, p.Missing)
			}
		case policy.LackApproval:
			if !p.Initiates || p.Policy.RequiredApprovals() != l.Approvals || l.Approvals == 0 {
				t.Errorf("%s lacks %q: initiates %t, approvals %d of %d", f.Change.Field, l.Text, p.Initiates, l.Approvals, p.Policy.RequiredApprovals())
			}
		default:
		}
	}
}

func byName(list []explain.ExplainedPolicy, name string) *explain.ExplainedPolicy {
	i := slices.IndexFunc(list, func(p explain.ExplainedPolicy) bool { return p.Policy.Name() == name && !p.Shadow })
	if i < 0 {
		return nil
	}

	return &list[i]
}
