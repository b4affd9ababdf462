// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
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

			play(t, filepath.Join(dir, entry.Name()))

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

// play does what a README shows, and fails where something else is seen.
func play(t *testing.T, example string) {
	t.Helper()

	commands, err := readConsole(filepath.Join(example, "README.md"))
	if err != nil {
		t.Fatal(err)
	}

	if len(commands) == 0 {
		t.Fatal("the README shows no command")
	}

	for _, c := range commands {
		if err := c.play(t.Context()); err != nil {
			t.Fatalf("README.md:%d: %s$ %s\n%v", c.line, c.user, c.text, err)
		}
	}
}

// play types the command, again if need be, and checks what is seen.
func (c command) play(ctx context.Context) error {
	if !c.reads() {
		out, err := c.output(ctx)

		// A kind may be served a moment after its definition says so.
		for deadline := time.Now().Add(patience.Limit); strings.Contains(out, "no matches for kind") && time.Now().Before(deadline); {
			out, err = c.output(ctx)
		}

		return c.check(out, err)
	}

	return scenario.Eventually(ctx, "what is shown", func(ctx context.Context) error { return c.check(c.output(ctx)) })
}

// check compares what is seen, and whether the command ended with an error, with
// what is to be.
func (c command) check(out string, err error) error {
	if failed := err != nil; failed != c.fails() {
		return fmt.Errorf("it says\n%s(%w)", out, errors.Join(err, world.ErrOther))
	}

	if want := c.missing(out); want != "" {
		return fmt.Errorf("it does not say %q, but\n%s(%w)", want, out, world.ErrOther)
	}

	if said := c.untold(out); said != "" && !c.fails() {
		return fmt.Errorf("the README does not show that it says %q (%w)", said, world.ErrOther)
	}

	return nil
}

// output types the command in the repository's root. The shell takes quotes as it
// does for everybody else.
func (c command) output(ctx context.Context) (string, error) {
	kubeconfig := filepath.Join(running.Dir(), "kubeconfig")
	if c.user != "admin" {
		kubeconfig = filepath.Join(running.Dir(), "users", c.user+".kubeconfig")
	}

	cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(c.patient(), ".local/", running.Dir()+"/"))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+strings.Join([]string{
		filepath.Dir(running.Tools().Binary("kubectl")), running.BinDir(), os.Getenv("PATH"),
	}, string(os.PathListSeparator)))

	out, err := cmd.CombinedOutput()

	return string(out), err
}
