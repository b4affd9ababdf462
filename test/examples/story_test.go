// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// root is where the commands are typed, dir where the examples are.
const (
	root = "../.."
	dir  = root + "/examples"
	// postgres is the example for which the stack has a PostgreSQL server.
	postgres = "postgres"
)

func TestEachExampleIsAsItsREADMEShows(t *testing.T) {
	t.Parallel()

	// The Pods of this one are to be run by somebody.
	world.NewKubelet(t, running, "my-app").Allow(world.AllPods)

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	played := 0

	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == invalid {
			continue
		}

		played++

		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()

			if entry.Name() == "other-systems" {
				takeApplications(t)
			}

			if entry.Name() == postgres {
				world.Long(t)
			}

			page := filepath.Join(dir, entry.Name(), "README.md")
			if entry.Name() == "first-gate" {
				page = filepath.Join(root, "docs", "getting-started.md")
			}

			if err := shell().PlayPage(t.Context(), page); err != nil {
				t.Fatal(err)
			}

			if entry.Name() == "gitops" {
				t.Run("Tools", func(t *testing.T) {
					world.Long(t)
					toolsAgree(t)
					toolsLeaveGates(t)
				})
			}

			if entry.Name() == "other-systems" {
				hookAsks(t)
			}
		})
	}

	if played < 8 {
		t.Errorf("%d examples, want at least 8", played)
	}
}

// shell types commands in the repository's root.
func shell() play.Shell { return play.Shell{Stack: running, Dir: root} }
