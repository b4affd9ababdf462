// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

const (
	// patienceProgress is after how long a person wants to know how far something is.
	patienceProgress = time.Second
	// clearLine goes to the start of a terminal's line, and clears it.
	clearLine = "\r\x1b[K"
)

// progress shows on a terminal how far something is that takes longer than a moment.
type progress struct {
	out io.Writer
	now func() time.Time

	begun, last time.Time
}

// newProgress shows it where out is a terminal, and else nowhere.
func newProgress(out io.Writer) *progress {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{out: io.Discard, now: time.Now}
	}

	return &progress{out: out, now: time.Now}
}

// showf says how far it is, ten times a second at most.
func (p *progress) showf(format string, args ...any) {
	now := p.now()

	if p.begun.IsZero() {
		p.begun = now
	}

	if now.Sub(p.begun) < patienceProgress || now.Sub(p.last) < patienceProgress/10 {
		return
	}

	p.last = now
	_, _ = fmt.Fprintf(p.out, clearLine+format, args...)
}

// done clears what was shown.
func (p *progress) done() {
	if !p.last.IsZero() {
		_, _ = fmt.Fprint(p.out, clearLine)
	}
}
