// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package cookbook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// A Play is a recipe with its scenarios.
type Play struct {
	Recipe

	Scenarios []policytest.Scenario

	// root is the directory of all plays, dir that of this one.
	root, dir string
	files     policytest.Files
}

// ReadPlay reads the play of a recipe, which [Plays] have in a directory.
func ReadPlay(files policytest.Files, root string, r Recipe) (Play, error) {
	out := Play{Recipe: r, root: root, dir: path.Join(root, r.Anchor), files: files}

	places, err := policytest.Find(files, out.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("add scenarios that show what it allows, and what it does not")
	}

	if err != nil {
		return out, fmt.Errorf("recipe %q has no play %s: %w", r.Heading, out.dir, err)
	}

	reader := policytest.NewReader(files)

	for _, at := range places {
		s, err := reader.Read(policytest.Place{Root: root, Path: at.Path})
		if err != nil {
			return out, err
		}

		out.Scenarios = append(out.Scenarios, s)
	}

	return out, nil
}

// seen is what the scenarios of a play show of its recipe.
type seen struct {
	// allowed and refused count scenarios in which something is.
	allowed, refused int
	// used are the objects of the recipe that decide something, as KIND/NAME.
	used map[string]bool
	// given are the allowances of policies and windows, as [permission] writes them.
	given map[string]bool
}

// Check decides the scenarios, and says what is not as they want, and what of the recipe they do not show.
func (p *Play) Check(ctx context.Context) ([]string, error) {
	opts := policytest.Options{Coverage: true, Clock: time.Now, Select: regexp.MustCompile("^" + regexp.QuoteMeta(p.dir) + "/")}

	results, err := policytest.Run(ctx, p.files, []string{p.root}, opts)
	if err != nil {
		return nil, err
	}

	var out []string

	for _, r := range results {
		if r.Status != policytest.Passed {
			out = append(out, fmt.Sprintf("%s: %s\n%s: %v %v\n%v\n%s", r.Path, r.Reason, r.Status, r.Err, r.Differences, r.Missing, r.Decided))
		}
	}

	s := seen{used: map[string]bool{}, given: map[string]bool{}}

	for i := range p.Scenarios {
		if err := s.add(&p.Scenarios[i]); err != nil {
			return nil, fmt.Errorf("cannot decide %s: %w", p.Scenarios[i].Name, err)
		}
	}

	if s.allowed == 0 {
		out = append(out, "no scenario shows what the recipe allows")
	}

	if s.refused == 0 {
		out = append(out, "no scenario shows what the recipe does not allow")
	}

	lacks, err := p.unseen(s)

	return append(append(out, p.untried(results)...), lacks...), err
}

// untried says what of the policies no scenario has both allow and refuse something.
func (p *Play) untried(results []policytest.Result) []string {
	var out []string

	for _, c := range policytest.CoverageOf(results).Policies {
		if !strings.HasPrefix(c.Place, path.Join(p.dir, "base", fileRecipe)+":") {
			continue // It is there for what is played.
		}

		for _, item := range c.Items {
			if lacks := item.Lacks(); lacks != "" {
				out = append(out, fmt.Sprintf("AllowancePolicy %q: %s: %s: %s", c.Name, item.Field, item.Text, lacks))
			}
		}
	}

	return out
}

// addGate adds what a scenario of a gate shows.
func (s *seen) addGate(one *policytest.Scenario) error {
	plan, err := one.Outcome()
	if err != nil {
		return err //nolint:wrapcheck // It names the scenario.
	}

	text, err := plan.Want()
	if err != nil {
		return err //nolint:wrapcheck // Likewise.
	}

	if strings.Contains(text, "move: "+string(gate.OpenUp)+"\n") {
		s.allowed++
	} else {
		s.refused++
	}

	for _, w := range one.Upgrades {
		if strings.Contains(text, w.GetName()) {
			s.used[v1alpha1.KindUpgrade+"/"+w.GetName()] = true
		}
	}

	return nil
}

// add adds what a scenario shows.
func (s *seen) add(one *policytest.Scenario) error {
	if one.Gate != nil {
		return s.addGate(one)
	}

	req, _ := one.Decision()
	d := decision.Decide(req)

	switch d.Outcome() {
	case decision.OutcomeAllowed:
		s.allowed++
	case decision.OutcomeDenied, decision.OutcomeHeld, decision.OutcomeWarned, decision.OutcomeAudited:
		s.refused++
	case decision.OutcomeUnchanged, decision.OutcomeUngoverned:
	}

	for _, name := range d.Enforcements {
		s.used[v1alpha1.KindEnforcement+"/"+name] = true
	}

	for _, f := range d.Findings {
		name, _, _ := strings.Cut(f.Policy, "/")
		s.used[v1alpha1.KindPolicy+"/"+name], s.used[v1alpha1.KindUpgrade+"/"+name] = true, true

		for _, l := range f.Lacks {
			s.used[v1alpha1.KindPolicy+"/"+l.Policy] = true
		}
	}

	for _, f := range d.Shadow {
		s.used[v1alpha1.KindPolicy+"/"+f.Finding.Policy] = true
	}

	if d.Object == nil {
		return nil
	}

	given, err := allowance.Parse(d.Object)
	for _, a := range given {
		for _, m := range append(a.Mutations, a.Mutation) {
			s.given[permission(a.Policy, a.APIGroup, a.Kind, a.Relation, m)] = true
		}
	}

	return err
}

// permission is what a policy or a window lets follow.
func permission(by, group, kind string, relation v1alpha1.Relation, mutation string) string {
	if relation == v1alpha1.RelationExternal {
		return fmt.Sprintf("%s: %s %s", by, relation, mutation)
	}

	return fmt.Sprintf("%s: %s of a %s", by, mutation, strings.Trim(kind+"."+group, "."))
}

// unseen says which objects of the recipe decide nothing in any scenario, and which of what they allow none
// shows.
func (p *Play) unseen(s seen) ([]string, error) {
	var out []string

	objects, err := p.Objects()
	if err != nil {
		return nil, err
	}

	for _, u := range objects {
		kind := u.GetKind()
		if !slices.Contains([]string{v1alpha1.KindPolicy, v1alpha1.KindUpgrade, v1alpha1.KindEnforcement}, kind) {
			continue
		}

		if !s.used[kind+"/"+u.GetName()] {
			out = append(out, fmt.Sprintf("%s %q decides nothing", kind, u.GetName()))
		}
	}

	for _, x := range p.Scenarios[0].Policies {
		if x.Spec.EnforcementMode == v1alpha1.EnforcementModeShadow || !slices.ContainsFunc(objects, named(v1alpha1.KindPolicy, x.GetName())) {
			continue
		}

		for _, a := range x.Spec.Allow {
			for _, m := range a.Mutations {
				if text := permission(x.GetName(), a.APIGroup, a.Kind, a.Relation, m); !s.given[text] {
					out = append(out, "nothing shows that it lets follow "+text)
				}
			}
		}
	}

	return out, nil
}
