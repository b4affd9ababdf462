// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is one with a page of help for each of some arguments.
type program struct {
	name  string
	helps [][]string
}

// programs are those that have flags.
func programs() []program {
	return []program{
		{"function-kausality", [][]string{{}}},
		{"kausality-manager", [][]string{{}}},
		{"kubectl-kausality", [][]string{
			{},
			{"trace"},
			{"explain"},
			{"can"},
			{"allowed"},
			{"pending"},
			{"approve"},
			{"reject"},
			{"discard"},
			{"doctor"},
			{"audit"},
			{"version"},
			{"lint"},
			{"test"},
			{"replay"},
			{"suggest"},
			{"adopt"},
			{"release"},
			{"uninstall"},
		}},
	}
}

// writeFlags writes what the programs say of their flags. cobra/doc knows only the
// commands of kubectl-kausality, and writes a file for each.
func writeFlags(ctx context.Context, out *bytes.Buffer) error {
	dir, err := os.MkdirTemp("", "kausality-reference-*")
	if err != nil {
		return fmt.Errorf("cannot make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	programs := programs()

	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./cmd/"+p.name)
	}

	build := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Of constants.
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the programs: %w: %s", err, text)
	}

	fmt.Fprint(out, "\n# Flags\n\nWhat the programs say with `--help`.\n")

	for _, p := range programs {
		fmt.Fprintf(out, "\n## %s\n", p.name)

		for _, command := range p.helps {
			if len(command) > 0 {
				fmt.Fprintf(out, "\n### %s\n", strings.Join(command, " "))
			}

			help := exec.CommandContext(ctx, filepath.Join(dir, p.name), append(command, "--help")...) //nolint:gosec // As above.
			help.Env = append(os.Environ(), "COLUMNS=100")

			text, err := help.Output()
			if err != nil {
				return fmt.Errorf("cannot run %s: %w", p.name, err)
			}

			fmt.Fprintf(out, "\n```\n%s\n```\n", strings.TrimSpace(strings.ReplaceAll(string(text), dir+"/", "")))
		}
	}

	return nil
}
