// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Kind says what a block is.
type Kind int

// The kinds of blocks.
const (
	// Heading is the title of a step, with its number.
	Heading Kind = iota
	// Said is a sentence.
	Said
	// Typed is a command behind its user's prompt, with what it printed.
	Typed
	// Shown is a part of an object.
	Shown
	// Omitted stands for blocks that are left out.
	Omitted
)

// A Block is printed at once.
type Block struct {
	Kind Kind
	// Step it belongs to, from 1.
	Step int
	// At is when it was told, since the first block.
	At time.Duration
	// Lines of text, not wrapped.
	Lines []string
}

// Session tells a story on a terminal and remembers it. It is a narrator of
// package scenario. It is not for several goroutines.
type Session struct {
	out    io.Writer
	paint  painter
	now    func() time.Time
	begun  time.Time
	step   int
	blocks []Block
}

// New makes a session that shows its story on out, in colours if they are
// wanted.
func New(out io.Writer, colours bool, now func() time.Time) *Session {
	s := &Session{out: out, now: now, paint: plain}
	if colours {
		s.paint = ansi
	}

	return s
}

// Begin begins the next step.
func (s *Session) Begin(title string) {
	s.step++
	s.tell(Heading, []string{fmt.Sprintf("%d. %s", s.step, title)})
}

// Sayf tells one thing, in a sentence.
func (s *Session) Sayf(format string, args ...any) {
	s.tell(Said, []string{fmt.Sprintf(format, args...)})
}

// Show shows a command behind a prompt with its output, or a part of an object.
func (s *Session) Show(text string) {
	kind := Shown
	if prompt.MatchString(text) {
		kind = Typed
	}

	s.tell(kind, strings.Split(strings.TrimRight(text, "\n"), "\n"))
}

// Blocks returns what was told so far.
func (s *Session) Blocks() []Block { return s.blocks }

func (s *Session) tell(kind Kind, lines []string) {
	b := Block{Kind: kind, Step: s.step, Lines: lines}

	if now := s.now(); s.begun.IsZero() {
		s.begun = now
	} else {
		b.At = now.Sub(s.begun)
	}

	s.blocks = append(s.blocks, b)

	// Nobody reads it where a terminal is gone.
	_, _ = io.WriteString(s.out, s.paint.rows(rows(b, 0)))
}

// prompt is whose command it is.
var prompt = regexp.MustCompile(`^(admin|hans|anna)\$ `)
