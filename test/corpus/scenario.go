// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

//go:embed */*.txtar base/*.yaml defaults.yaml
var files embed.FS

// root is the directory of the scenarios, in files.
const root = "."

// Scenario is one file of the corpus.
type Scenario = policytest.Scenario

// Who is who in the corpus.
const (
	// Crossplane works under this user name.
	Crossplane = policytest.Crossplane
	// Manager is the user name of Kausality's manager.
	Manager = policytest.Manager
)

// Describe is a decision as want.yaml says it.
func Describe(d decision.Decision) policytest.Want { return policytest.Describe(d) }

// All returns every scenario, by name.
func All() ([]Scenario, error) {
	places, err := policytest.Find(files, root)
	if err != nil {
		return nil, err
	}

	reader := policytest.NewReader(files)
	out := make([]Scenario, 0, len(places))

	for _, at := range places {
		s, err := reader.Read(at)
		if err != nil {
			return nil, err
		}

		out = append(out, s)
	}

	return out, nil
}

// Sources returns the text of every scenario, by name.
func Sources() (map[string][]byte, error) {
	names, err := fs.Glob(files, "*/*"+policytest.Ending)
	if err != nil {
		return nil, fmt.Errorf("cannot list scenarios: %w", err)
	}

	out := make(map[string][]byte, len(names))

	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read scenario %q: %w", name, err)
		}

		out[strings.TrimSuffix(name, policytest.Ending)] = raw
	}

	return out, nil
}

// Parse reads one scenario.
func Parse(name string, raw []byte) (Scenario, error) {
	return policytest.NewReader(files).Parse(policytest.Place{Root: root, Path: name + policytest.Ending}, raw)
}
