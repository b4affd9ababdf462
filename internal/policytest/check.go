// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// errBroken is the cause where a policy does not compile, and want.yaml does not say so.
var errBroken = errors.New("it is not in force; want.yaml or texts.yaml has problems, or broken of a gate, where that is what is tested")

// Check compares what the engine makes of a scenario with what this wants. The differences are those
// of want.yaml, and of patched.yaml and texts.yaml where the scenario has them, by path.
func (s *Scenario) Check(got Outcome) ([]Difference, error) {
	sections, err := s.compared(got)
	if err != nil {
		return nil, s.fail(err)
	}

	var out []Difference

	for _, one := range sections {
		c := comparison{exact: s.exact}
		c.compare("", one.want, one.got)

		for _, d := range c.out {
			if one.file != fileWant {
				d.Path = strings.TrimSuffix(one.file+": "+d.Path, ": ")
			}

			out = append(out, d)
		}
	}

	return out, nil
}

// compared is a section with what is wanted of it and what there is.
type compared struct {
	file      string
	want, got map[string]any
}

// compared are the sections to be compared.
func (s *Scenario) compared(got Outcome) ([]compared, error) {
	want := compared{fileWant, s.wanted, s.shown(got)}

	if s.exact {
		var err error
		if want.got, err = got.Decisions(); err != nil {
			return nil, err
		}
	}

	out := []compared{want}

	if s.exact || s.has(filePatched) {
		patched, err := s.patchedOf(got)
		if err != nil {
			return nil, err
		}

		stored, err := section{text: []byte(patched)}.mapping()
		if err != nil {
			return nil, err
		}

		out = append(out, compared{filePatched, s.stored, stored})
	}

	if s.exact || s.has(fileTexts) {
		texts, err := got.Texts()
		if err != nil {
			return nil, err
		}

		out = append(out, compared{fileTexts, s.said, texts})
	}

	return out, nil
}

// patchedOf is patched.yaml: without texts where everything is compared.
func (s *Scenario) patchedOf(got Outcome) (string, error) {
	if s.exact {
		return got.PatchedDecisions()
	}

	return got.Patched()
}

// shown is what is decided, without what says it in short where that is not wanted.
func (s *Scenario) shown(got Outcome) map[string]any {
	out := map[string]any{}

	for key, value := range got.said {
		_, wanted := s.wanted[key]
		if wanted || s.Request == nil || !slices.Contains([]string{"allowed", "outcome"}, key) {
			out[key] = value
		}
	}

	return out
}

// compiles is an error where a policy does not compile and the scenario is not about that.
func (s *Scenario) compiles() error {
	for _, key := range []string{"problems", "broken"} {
		if _, ok := s.wanted[key]; ok {
			return nil
		}

		if _, ok := s.said[key]; ok {
			return nil
		}
	}

	if len(s.broken) == 0 {
		return nil
	}

	return fmt.Errorf("%w\n%w", errors.Join(s.broken...), errBroken)
}

// HasWant reports whether the scenario says what it wants.
func (s *Scenario) HasWant() bool { return s.has(fileWant) }

// Written is what came of a scenario, as its file says it. An empty section is left out of the file.
type Written struct{ Want, Patched, Texts string }

// Renew is what came of a scenario: the sections that are there, with the fields they have, unless
// the scenario is exact.
func (s *Scenario) Renew(got Outcome) (Written, error) {
	if s.exact {
		return got.exactly()
	}

	var (
		out Written
		err error
	)

	if out.Patched, err = s.renewPatched(got); err != nil {
		return out, err
	}

	if s.has(fileTexts) {
		texts, err := got.Texts()
		if err != nil {
			return out, err
		}

		if out.Texts, err = document(shaped(s.said, texts)); err != nil {
			return out, err
		}
	}

	if !s.has(fileWant) {
		out.Want, err = got.Want()

		return out, err
	}

	shape, shown := maps.Clone(s.wanted), s.shown(got)
	if _, ok := shown["allowed"].(bool); !ok && shape["allowed"] != nil {
		delete(shape, "allowed") // It is neither.

		shape["outcome"], shown["outcome"] = "", got.said["outcome"]
	}

	raw, err := yaml.Marshal(as(shape, shown))
	if err != nil {
		return out, fmt.Errorf("cannot write %s: %w", fileWant, err)
	}

	out.Want = string(raw)

	return out, nil
}

// shaped is what there is in the shape of what is wanted.
func shaped(want, got map[string]any) map[string]any {
	out, _ := as(want, got).(map[string]any)

	return out
}

// exactly is all that came of a scenario.
func (o *Outcome) exactly() (Written, error) {
	var out Written

	decided, err := o.Decisions()
	if err != nil {
		return out, err
	}

	texts, err := o.Texts()
	if err != nil {
		return out, err
	}

	raw, err := yaml.Marshal(decided)
	if err != nil {
		return out, fmt.Errorf("cannot write %s: %w", fileWant, err)
	}

	out.Want = string(raw)

	if out.Patched, err = o.PatchedDecisions(); err == nil {
		out.Texts, err = document(texts)
	}

	return out, err
}

func (s *Scenario) renewPatched(got Outcome) (string, error) {
	if !s.has(filePatched) {
		return "", nil
	}

	patched, err := got.Patched()
	if patched == "" {
		patched = "{}\n" // That nothing is patched is wanted, too.
	}

	return patched, err
}

// Save writes the scenario with what came of it to its file below dir.
func (s *Scenario) Save(dir string, w Written) error {
	out := &txtar.Archive{Comment: s.archive.Comment}

	for _, f := range s.archive.Files {
		if f.Name != fileWant && f.Name != filePatched && f.Name != fileTexts {
			out.Files = append(out.Files, f)
		}
	}

	for _, f := range []struct{ name, text string }{{fileWant, w.Want}, {filePatched, w.Patched}, {fileTexts, w.Texts}} {
		if f.text != "" || f.name == fileWant {
			out.Files = append(out.Files, txtar.File{Name: f.name, Data: []byte(f.text)})
		}
	}

	file := filepath.Join(filepath.FromSlash(dir), filepath.FromSlash(path.Clean(s.Name))+Ending)
	if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil { //nolint:gosec // As the others of the repository.
		return fmt.Errorf("cannot write scenario: %w", err)
	}

	return nil
}
