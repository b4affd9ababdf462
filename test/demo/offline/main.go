// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// offline tests policies without a cluster, as kubectl kausality test does. It is a program of its own as it compiles
// in half the time of the demo, and the first demo has something to read while the rest is compiled and built.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// errTest is the cause where a policy test does not pass.
var errTest = errors.New("it does not pass: run kubectl kausality test examples")

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: it did not work:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dirs []string) error {
	fmt.Printf("\nThe policies of %s, tested offline, without a cluster:\n\n", strings.Join(dirs, ", "))

	results, err := policytest.Run(ctx, policytest.Disk(), dirs, policytest.Options{Clock: time.Now})
	if err != nil {
		return fmt.Errorf("cannot test the policies: %w", err)
	}

	for _, r := range results {
		fmt.Printf("   %s  %s\n", r.Status, r.Reason)

		if r.Status != policytest.Passed {
			return fmt.Errorf("%s: %w", r.Path, errors.Join(errTest, r.Err))
		}
	}

	fmt.Println()

	return nil
}
