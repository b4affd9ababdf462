// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// generator generates the kinds and their controllers into the directory that it
// is reported.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/crossplane/upjet/v2/pkg/pipeline"

	"github.com/kausality-io/kausality-crossplane/test/upjet/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("cannot generate: want one argument, the directory, got %d", len(args))
	}

	dir, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("cannot generate: %w", err)
	}

	cluster, err := config.Cluster()
	if err != nil {
		return err
	}

	namespaced, err := config.Namespaced()
	if err != nil {
		return err
	}

	pipeline.Run(cluster, namespaced, dir)

	return nil
}
