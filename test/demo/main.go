// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// demo starts a control plane, plays the main job on it, prints what happens,
// and leaves nothing running. It exits with 0 only if all of it happened.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
	"github.com/kausality-io/kausality-crossplane/test/demo/session"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// errTest is the cause where a policy test does not pass.
var errTest = errors.New("it does not pass: run kubectl kausality test examples")

func main() {
	var recordings []string

	flag.Func("record", "`file` for a recording: .svg for a picture, .cast for asciinema; may be repeated", func(file string) error {
		recordings = append(recordings, file)

		return recordable(file)
	})
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, recordings)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: it did not work:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, recordings []string) (err error) {
	told := session.New(os.Stdout, terminal(), time.Now)

	examples, err := examplesDir()
	if err != nil {
		return err
	}

	if err := offline(ctx, examples); err != nil {
		return err
	}

	fmt.Print("\nThe control plane: real programs, built once from source. Later runs find them.\n\n")

	s, err := stack.Start(ctx, stack.Options{
		Output: os.Stdout, Governed: stack.Suite(), ManagerFlags: []string{"--settle=2s"}, KubectlOfPath: true,
	})
	if err != nil {
		return fmt.Errorf("cannot start the control plane: %w", err)
	}

	defer func() {
		if stopErr := s.Stop(); err == nil {
			err = stopErr
		}
	}()

	play, err := scenario.New(s, examples, told)
	if err != nil {
		return err
	}

	for i, step := range play.Steps() {
		told.Begin(step.Title)

		if err := step.Run(ctx); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.Title, err)
		}
	}

	fmt.Println("\nAll of it happened. Stopping the control plane.")

	return record(told, recordings)
}

// offline tests the policies of the example, as kubectl kausality test does: there is something to read while the
// control plane is built.
func offline(ctx context.Context, examples string) error {
	fmt.Print("\nThe policies of examples/claim-with-ticket, tested offline, without a cluster:\n\n")

	results, err := policytest.Run(ctx, policytest.Disk(), []string{filepath.Join(examples, "claim-with-ticket", "tests")},
		policytest.Options{Clock: time.Now})
	if err != nil {
		return fmt.Errorf("cannot test the policies: %w", err)
	}

	for _, r := range results {
		fmt.Printf("   %s  %s\n", r.Status, r.Reason)

		if r.Status != policytest.Passed {
			return fmt.Errorf("%s: %w", r.Path, errors.Join(errTest, r.Err))
		}
	}

	return nil
}

// terminal reports whether colours are wanted.
func terminal() bool {
	info, err := os.Stdout.Stat()

	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// examplesDir is the folder of manifests in the repository this was built
// from.
func examplesDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("cannot find the repository: built without source paths")
	}

	return filepath.Join(filepath.Dir(file), "..", "..", "examples"), nil
}
