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
var errBroken = errors.New("it is not in force; want.yaml has problems, or broken of a gate, where that is what is tested")

// Check compares what the engine makes of a scenario with what this wants. The differences are those
// of want.yaml, and of patched.yaml where the scenario has one, by path.
func (s *Scenario) Check(got Outcome) ([]Difference, error) {
	c := comparison{exact: s.exact}
	c.compare("", s.wanted, s.shown(got))

	if !s.exact && !s.has(filePatched) {
		return c.out, nil
	}

	patched, err := got.Patched()
	if err != nil {
		return nil, s.fail(err)
	}

	stored, err := section{text: []byte(patched)}.mapping()
	if err != nil {
		return nil, s.fail(err)
	}

	p := comparison{exact: s.exact}
	p.compare("", s.stored, stored)

	for _, d := range p.out {
		d.Path = strings.TrimSuffix(filePatched+": "+d.Path, ": ")
		c.out = append(c.out, d)
	}

	return c.out, nil
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
	}

	if len(s.broken) == 0 {
		return nil
	}

	return fmt.Errorf("%w\n%w", errors.Join(s.broken...), errBroken)
}

// HasWant reports whether the scenario says what it wants.
func (s *Scenario) HasWant() bool { return s.has(fileWant) }

// Renew is want.yaml and patched.yaml with what the engine makes of the scenario: where they are
// there, with the fields they have, unless the scenario is exact.
func (s *Scenario) Renew(got Outcome) (want, patched string, err error) {
	if patched, err = s.renewPatched(got); err != nil {
		return "", "", err
	}

	if s.exact || !s.has(fileWant) {
		want, err = got.Want()

		return want, patched, err
	}

	shape, shown := maps.Clone(s.wanted), s.shown(got)
	if _, ok := shown["allowed"].(bool); !ok && shape["allowed"] != nil {
		delete(shape, "allowed") // It is neither.

		shape["outcome"], shown["outcome"] = "", got.said["outcome"]
	}

	raw, err := yaml.Marshal(as(shape, shown))
	if err != nil {
		return "", "", fmt.Errorf("cannot write %s: %w", fileWant, err)
	}

	return string(raw), patched, nil
}

func (s *Scenario) renewPatched(got Outcome) (string, error) {
	if !s.exact && !s.has(filePatched) {
		return "", nil
	}

	patched, err := got.Patched()
	if patched == "" && !s.exact {
		patched = "{}\n" // That nothing is patched is wanted, too.
	}

	return patched, err
}

// Save writes the scenario with what came of it to its file below dir.
func (s *Scenario) Save(dir, want, patched string) error {
	out := &txtar.Archive{Comment: s.archive.Comment}

	for _, f := range s.archive.Files {
		if f.Name != fileWant && f.Name != filePatched {
			out.Files = append(out.Files, f)
		}
	}

	out.Files = append(out.Files, txtar.File{Name: fileWant, Data: []byte(want)})
	if patched != "" {
		out.Files = append(out.Files, txtar.File{Name: filePatched, Data: []byte(patched)})
	}

	file := filepath.Join(filepath.FromSlash(dir), filepath.FromSlash(path.Clean(s.Name))+Ending)
	if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil { //nolint:gosec // As the others of the repository.
		return fmt.Errorf("cannot write scenario: %w", err)
	}

	return nil
}
