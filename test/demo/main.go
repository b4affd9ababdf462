// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// demo starts a control plane, plays the main job on it, tells what happens,
// and leaves nothing running. It exits with 0 only if all of it happened.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: it did not work:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	fmt.Println("A control plane of real parts: etcd, kube-apiserver, kube-controller-manager, Crossplane, " +
		"provider-kubernetes and Kausality.\nThe first time they are built from source, which takes some minutes.")

	s, err := stack.Start(ctx, stack.Options{Output: os.Stdout, ManagerFlags: []string{"--settle=2s"}})
	if err != nil {
		return fmt.Errorf("cannot start the control plane: %w", err)
	}

	defer func() {
		if stopErr := s.Stop(); err == nil {
			err = stopErr
		}
	}()

	examples, err := examplesDir()
	if err != nil {
		return err
	}

	play, err := scenario.New(s, examples, teller{})
	if err != nil {
		return err
	}

	for i, step := range play.Steps() {
		fmt.Printf("\n%d. %s\n", i+1, step.Title)

		if err := step.Run(ctx); err != nil {
			return fmt.Errorf("step %d, %q: %w", i+1, step.Title, err)
		}
	}

	fmt.Println("\nAll of it happened. Stopping the control plane.")

	return nil
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

// teller writes what happens to the terminal.
type teller struct{}

func (teller) Sayf(format string, args ...any) { fmt.Printf("\n   "+format+"\n", args...) }

func (teller) Show(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		fmt.Print("     │ " + line)
	}
}
