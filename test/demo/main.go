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

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/test/demo/session"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

func main() {
	log.SetLogger(logr.Discard()) // Or controller-runtime prints a stack after half a minute.

	var recordings []string

	flag.Func("record", "`file` for a recording: .svg for a picture, .cast for asciinema; may be repeated", func(file string) error {
		recordings = append(recordings, file)

		return recordable(file)
	})

	opts := stack.Options{Output: os.Stdout, Governed: stack.Suite(), ManagerFlags: []string{"--settle=2s"}, KubectlOfPath: true}
	flag.StringVar(&opts.Kubernetes, "kubernetes", "", "minor `version` of Kubernetes: one of those in test/stack/modules")
	flag.BoolVar(&opts.CrossplaneBefore2, "crossplane-before-2", false, "run Crossplane 1.20")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, opts, recordings)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: it did not work:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts stack.Options, recordings []string) (err error) {
	told := session.New(os.Stdout, terminal(), time.Now)

	examples, err := examplesDir()
	if err != nil {
		return err
	}

	fmt.Print("\nThe control plane: real programs, built once from source. Later runs find them.\n\n")

	s, err := stack.Start(ctx, opts)
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
