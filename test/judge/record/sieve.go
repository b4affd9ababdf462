// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"

	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/judge"
)

// A sieve keeps of decisions that are alike the first.
type sieve struct {
	decider *judge.Decider
	// full are the policies of the log that is read, and known those that were compiled, by digest.
	full  map[string]*decisionlog.InForce
	known map[string]*decisionlog.InForce
	seen  map[[sha256.Size]byte]bool
	kept  []decided

	all, alike, unknown int
}

// decided is a decision that was kept.
type decided struct {
	record *decisionlog.Decision
	judged judge.Judged
	// order is by kind of object, part and operation first: what is alike is compressed well.
	order string
	// rank is drawn by what was decided: which are left out where there are too many.
	rank string
}

func newSieve() *sieve {
	return &sieve{decider: judge.NewDecider(), known: map[string]*decisionlog.InForce{}, seen: map[[sha256.Size]byte]bool{}}
}

func (s *sieve) String() string {
	return fmt.Sprintf("%d decisions: %d are like others, %d ask for what their log does not have; %d are in the log, by %d sets of policies",
		s.all, s.alike, s.unknown, len(s.kept), len(s.sets()))
}

// read reads a log. Who writes it may have been killed: a line that is no JSON is left out.
func (s *sieve) read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read log: %w", err)
	}
	defer file.Close() //nolint:errcheck // It was read.

	s.full = map[string]*decisionlog.InForce{}
	in := bufio.NewReaderSize(file, 1<<20)

	for {
		line, err := in.ReadBytes('\n')
		if json.Valid(line) {
			if err := s.line(line); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}

		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return fmt.Errorf("cannot read log: %w", err)
		}
	}
}

func (s *sieve) line(text []byte) error {
	var header decisionlog.Header
	if err := json.Unmarshal(text, &header); err != nil {
		return fmt.Errorf("cannot read line: %w", err)
	}

	switch header.Kind {
	case decisionlog.KindInForce:
		by := &decisionlog.InForce{}
		if err := json.Unmarshal(text, by); err != nil {
			return fmt.Errorf("cannot read policies: %w", err)
		}

		s.full[by.Digest] = by
	case decisionlog.KindDecision:
		d := &decisionlog.Decision{}
		if err := json.Unmarshal(text, d); err != nil {
			return fmt.Errorf("cannot read decision: %w", err)
		}

		return s.decision(d)
	}

	return nil
}

// decision decides a decision of the log again, and keeps it where none like it is kept.
func (s *sieve) decision(d *decisionlog.Decision) error {
	s.all++

	full, ok := s.full[d.InForce]
	if !ok {
		return nil // The line was cut.
	}

	d.Outcome = decisionlog.Outcome{}

	// Asked with fewer policies first: that is quick, and most are like others.
	small, err := reduced(full, d)
	if err != nil {
		return err
	}

	judged, err := s.decide(d, small)
	if err != nil {
		return err
	}

	sign, err := signature(d, small, judged)
	if err != nil {
		return err
	}

	if s.seen[sign] {
		s.alike++

		return nil
	}

	s.seen[sign] = true

	whole, err := s.decide(d, full)
	if err != nil {
		return err
	}

	if len(whole.Unknown) > 0 {
		s.unknown++

		return nil
	}

	by := small
	if !reflect.DeepEqual(judged, whole) {
		by, judged = full, whole // Others than its own kinds' decide, too.
	}

	d.InForce = by.Digest
	s.kept = append(s.kept, decided{
		record: d, judged: judged, rank: hex.EncodeToString(sign[:]),
		order: judge.Name(d, 0) + " " + by.Digest,
	})

	return nil
}

// decide decides a decision by some policies.
func (s *sieve) decide(d *decisionlog.Decision, by *decisionlog.InForce) (judge.Judged, error) {
	if s.known[by.Digest] == nil {
		s.decider.Know(by)
		s.known[by.Digest] = by
	}

	d.InForce = by.Digest

	decide, err := s.decider.Prepare(d)
	if err != nil {
		return judge.Judged{}, fmt.Errorf("cannot prepare decision: %w", err)
	}

	return decide()
}

// volatile is what differs between two runs of the same: UIDs, times, versions, and what the API server
// and tests add to names.
var volatile = regexp.MustCompile(
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}` + // UIDs
		`|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z` + // times
		`|"resourceVersion":"\d+"` +
		`|-[bcdfghjklmnpqrstvwxz2456789]{5}\b` + // suffixes of generated names
		`|\d+`, // numbers in names, generations: what was decided of them is in the decision
)

// signature is the same of decisions that are alike.
func signature(d *decisionlog.Decision, by *decisionlog.InForce, judged judge.Judged) ([sha256.Size]byte, error) {
	raw, err := json.Marshal([]any{d, by, judged})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("cannot encode decision: %w", err)
	}

	return sha256.Sum256(volatile.ReplaceAll(raw, []byte("*"))), nil
}

// within is the log, compressed, with so many decisions that it is no larger than that.
func (s *sieve) within(most int) ([]byte, error) {
	slices.SortFunc(s.kept, func(a, b decided) int { return cmp.Compare(a.rank, b.rank) })

	for {
		out, err := written(s.lines())
		if err != nil || len(out) <= most {
			return out, err
		}

		fmt.Printf("%d decisions take %d bytes\n", len(s.kept), len(out))

		s.kept = s.kept[:len(s.kept)*most/len(out)*99/100]
	}
}

// lines are the lines of the log: policies before the first decision by them.
func (s *sieve) lines() []judge.Line {
	sorted := slices.Clone(s.kept)
	slices.SortStableFunc(sorted, func(a, b decided) int { return cmp.Compare(a.order, b.order) })

	var out []judge.Line

	written := map[string]bool{}

	for i := range sorted {
		d := &sorted[i]

		if by := d.record.InForce; !written[by] {
			written[by] = true

			out = append(out, judge.Line{InForce: s.known[by]})
		}

		out = append(out, judge.Line{Decision: d.record, Judged: &d.judged})
	}

	return out
}

// sets are the digests of the policies of what is kept.
func (s *sieve) sets() map[string]bool {
	out := map[string]bool{}
	for i := range s.kept {
		out[s.kept[i].record.InForce] = true
	}

	return out
}

// digested is policies with their digest.
func digested(by *decisionlog.InForce) (*decisionlog.InForce, error) {
	by.Digest = ""

	raw, err := json.Marshal(by)
	if err != nil {
		return nil, fmt.Errorf("cannot encode policies: %w", err)
	}

	sum := sha256.Sum256(bytes.TrimSpace(raw))
	by.Digest = hex.EncodeToString(sum[:8])

	return by, nil
}
