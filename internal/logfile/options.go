// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"errors"
	"fmt"
	"os"
)

// Options are flags of a program that logs decisions, as kong reads them.
type Options struct {
	// File to log to; empty for no log.
	File string `help:"File to log decisions to, as JSON lines with all that they were made by, for kubectl kausality replay; none without it. Credentials in objects are masked." name:"decision-log" placeholder:"FILE"`
	// MaxBytes of one file.
	MaxBytes int64 `default:"104857600" help:"Bytes of the decision log at which it is rotated." name:"decision-log-max-bytes"`
	// MaxFiles there are, with the one that is written to.
	MaxFiles int `default:"10" help:"Files of the decision log that stay, at least 2; those that are rotated are compressed." name:"decision-log-max-files"`
	// Rate is how many decisions are logged in a second.
	Rate float64 `default:"100" help:"Decisions that are logged in a second at most; the others are left out and counted. 0 for all." name:"decision-log-rate"`
}

// Least that options may say.
const (
	leastBytes = 64 * 1024
	leastFiles = 2
)

var (
	errBytes = fmt.Errorf("it has to be at least %d", leastBytes)
	errFiles = fmt.Errorf("it has to be at least %d", leastFiles)
	errRate  = errors.New("it must not be negative")
	errFile  = errors.New("it is no regular file, and could not be rotated")
)

// validate reports what cannot be.
func (o *Options) validate() error {
	switch {
	case o.MaxBytes < leastBytes:
		return fmt.Errorf("cannot use --decision-log-max-bytes=%d: %w", o.MaxBytes, errBytes)
	case o.MaxFiles < leastFiles:
		return fmt.Errorf("cannot use --decision-log-max-files=%d: %w", o.MaxFiles, errFiles)
	case o.Rate < 0:
		return fmt.Errorf("cannot use --decision-log-rate=%v: %w", o.Rate, errRate)
	}

	if info, err := os.Stat(o.File); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot use --decision-log=%s: %w", o.File, errFile)
	}

	return nil
}
