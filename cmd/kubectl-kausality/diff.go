// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// diffHelp ends the help of diff, whose exit codes are those that kubectl expects.
const diffHelp = "Exit codes, as those of diff: 0 they are the same; 1 they differ; more than 1 it failed."

// differs is what diff ends with: it has said all there is to say.
type differs struct{ code int }

func (d differs) Error() string { return fmt.Sprintf("diff ended with %d", d.code) }

func diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff LIVE MERGED",
		Short: "Have kubectl diff leave out what Kausality writes",
		Long: "Show what differs between two directories of objects, without the annotations that only Kausality writes. kubectl diff calls " +
			"it where the environment says so, and its output is then about what you change.\n\n" + diffHelp,
		Example: "  export KUBECTL_EXTERNAL_DIFF='kubectl-kausality diff'\n" +
			"  kubectl diff --server-side -f database.yaml\n" +
			"  # What kubectl does then.\n" +
			"  kubectl kausality diff /tmp/LIVE-1 /tmp/MERGED-1",
		Args: func(cmd *cobra.Command, args []string) error {
			return failedDiff(usageArgs(cobra.ExactArgs(2))(cmd, args))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return failedDiff(diff(cmd, args[0], args[1])) },
	}
}

// failedDiff prevents a failure from being taken for a difference.
func failedDiff(err error) error {
	if err == nil || errors.As(err, &differs{}) {
		return err
	}

	return usageError{err}
}

// diff compares two directories.
func diff(cmd *cobra.Command, live, merged string) error {
	dir, err := os.MkdirTemp("", "kausality-diff-")
	if err != nil {
		return fmt.Errorf("cannot make a directory: %w", err)
	}

	defer os.RemoveAll(dir) //nolint:errcheck // It is a temporary one.

	args := []string{"-u", "-N"}

	for _, from := range []string{live, merged} {
		into := filepath.Join(dir, filepath.Base(from))
		if err := plain(from, into); err != nil {
			return err
		}

		args = append(args, into)
	}

	run := exec.CommandContext(cmd.Context(), "diff", args...)
	run.Stdout, run.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()

	err = run.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return differs{code: ended.ExitCode()}
	}

	if err != nil {
		return fmt.Errorf("cannot run diff: %w", err)
	}

	return nil
}

// plain copies the objects of a directory without what only Kausality writes.
func plain(from, into string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("cannot read objects: %w", err)
	}

	if err := os.Mkdir(into, 0o700); err != nil {
		return fmt.Errorf("cannot copy objects: %w", err)
	}

	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(from, e.Name())) //nolint:gosec // kubectl names the directory.
		if err != nil {
			return fmt.Errorf("cannot read an object: %w", err)
		}

		if raw, err = withoutOurs(raw); err != nil {
			return fmt.Errorf("cannot read %s: %w", e.Name(), err)
		}

		if err := os.WriteFile(filepath.Join(into, e.Name()), raw, 0o600); err != nil { //nolint:gosec // A name that ReadDir gave has no path.
			return fmt.Errorf("cannot copy an object: %w", err)
		}
	}

	return nil
}

// withoutOurs is an object in YAML without the annotations that only Kausality
// writes.
func withoutOurs(raw []byte) ([]byte, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return raw, nil // As kubectl says that there is none yet.
	}

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &u.Object); err != nil {
		return nil, err
	}

	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.AnnotationPrefix) })

	if len(annotations) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	} else {
		u.SetAnnotations(annotations)
	}

	return yaml.Marshal(u.Object)
}
