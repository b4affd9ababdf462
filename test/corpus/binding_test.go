// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// precedence is the head of the table of docs/semantics.md that says who may initiate.
const precedence = "| `bindingMode` | bindings of the policy in the namespace |"

// TestWhoMayInitiateIsAsTheTableOfConceptsSays has a scenario binding/MODE-BINDINGS-WHO for each
// answer of the table, that is about what its name says and decided as the table says.
func TestWhoMayInitiateIsAsTheTableOfConceptsSays(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	left := map[string]corpus.Scenario{}

	for _, s := range all {
		if strings.HasPrefix(s.Name, "binding/") {
			left[s.Name] = s
		}
	}

	for _, row := range rows(t) {
		mode, _, _ := strings.Cut(strings.Trim(row[0], "`"), "`")

		for _, bound := range boundIn(t, row[1]) {
			for who, says := range map[string]string{"own": row[2], "permission": row[2], "binding": row[3]} {
				if says == "" || who == "binding" && !bound {
					continue // Without a binding there is nobody whom it names.
				}

				name := fmt.Sprintf("binding/%s-%s-%s", strings.ToLower(mode), map[bool]string{true: "bound", false: "unbound"}[bound], who)

				s, ok := left[name]
				if !ok {
					t.Errorf("there is no scenario %s", name)

					continue
				}

				delete(left, name)
				checkRow(t, s, v1alpha1.BindingMode(mode), bound, who, !strings.HasPrefix(says, "may not"))
			}
		}
	}

	for name := range left {
		t.Errorf("%s is about no row of the table", name)
	}
}

// checkRow checks that a scenario is about a row of the table, and decided as it says.
func checkRow(t *testing.T, s corpus.Scenario, mode v1alpha1.BindingMode, bound bool, who string, may bool) {
	t.Helper()

	p, user := s.Policies[0].Spec, policy.User{Name: s.Request.User.Name, Groups: s.Request.User.Groups}
	named := slices.ContainsFunc(s.Bindings, func(b v1alpha1.AllowanceBinding) bool {
		return slices.ContainsFunc(b.Spec.Subjects, func(s v1alpha1.BindingSubject) bool { return s.Name == user.Name })
	})

	if p.BindingMode != mode || bound != (len(s.Bindings) > 0) ||
		(who == "own") != policy.MayInitiate(p.Subjects, user) || (who == "permission") != (s.Request.Granted != nil) || (who == "binding") != named {
		t.Errorf("%s is not about what its name says", s.Name)
	}

	req, _ := s.Decision()

	d := decision.Decide(req)
	if got := d.Findings[0].Verdict == finding.Allowed; len(d.Findings) != 1 || got != may {
		t.Errorf("%s: it may be initiated: %t, and the table of concepts says %t", s.Name, got, may)
	}
}

// boundIn is whether there are bindings of a policy where a cell of the table says what there is.
func boundIn(t *testing.T, cell string) []bool {
	t.Helper()

	switch cell {
	case "any":
		return []bool{false, true}
	case "none":
		return []bool{false}
	case "one or more":
		return []bool{true}
	default:
		t.Fatalf("the table says %q of bindings", cell)

		return nil
	}
}

// rows are those of the table, as cells.
func rows(t *testing.T) [][]string {
	t.Helper()

	raw, err := os.ReadFile("../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}

	_, table, ok := strings.Cut(string(raw), precedence)
	if !ok {
		t.Fatalf("docs/semantics.md has no table that begins with %s", precedence)
	}

	var out [][]string

	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}

		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}

		if strings.HasPrefix(line, "| `") {
			out = append(out, cells)
		}
	}

	if len(out) == 0 {
		t.Fatal("the table has no rows")
	}

	return out
}
