// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Log is one to be read.
type Log struct {
	// Name of it, for a person.
	Name string
	// Open opens it; it is closed when it was read.
	Open func() (io.ReadCloser, error)
}

// Options of a replay.
type Options struct {
	// Policies to decide by, in the place of those of the log.
	Policies Policies
	// About says of which kinds decisions are made again; nil for all.
	About func(schema.GroupKind) bool
	// Chains has changes follow from what these policies let through: parents carry the allowances
	// that the decisions about them give now. The logs are opened several times for that.
	Chains bool
	// Workers is how many decisions are made at once; at least one.
	Workers int
	// Progress is told how many decisions were made so far; nil for nobody.
	Progress func(decisions int)
}

// Limits of a batch of lines, which one worker decides: so many that handing it on costs
// little, and so few that several fit into memory.
const (
	maxBatch      = 64
	maxBatchBytes = 4 * 1024 * 1024
)

// batch are lines with decisions, in order, and what comes of them.
type batch struct {
	lines    []numbered
	bytes    int
	verdicts []verdict
	// dropped and skipped are what was read beside these lines.
	dropped int64
	skipped int
	done    chan struct{}
}

// numbered is a line of a log, or why it cannot be read.
type numbered struct {
	at

	text []byte
	by   *logged
	// basis is what was in force, as far as the line shows that without being decoded.
	basis *basis
	err   error
}

// Run decides the decisions of logs again, in their order. The error is the context's.
func Run(ctx context.Context, logs []Log, opts Options) (*Summary, error) {
	if !opts.Chains {
		return run(ctx, logs, opts, nil)
	}

	before := map[object][]v1alpha1.Allowance{}

	for n := 1; ; n++ {
		c := newChain(before)

		out, err := run(ctx, logs, opts, c)
		if err != nil || c.done() || n == maxHops {
			if err == nil && (c.more || !c.done()) {
				out.Problems = append(out.Problems, Problem{Message: errChains.Error()})
				out.Unreadable++
			}

			return out, err
		}

		before = c.now
	}
}

// errChains is the cause where not all is followed that these policies let through.
var errChains = fmt.Errorf("not all is followed: more than %d objects give allowances, or chains have over %d hops", maxGivers, maxHops)

// run decides the decisions of logs once.
func run(ctx context.Context, logs []Log, opts Options, follows *chain) (*Summary, error) {
	work, order := make(chan *batch), make(chan *batch, 2*max(1, opts.Workers))

	var group sync.WaitGroup

	group.Go(func() {
		defer close(work)
		defer close(order)

		s := &scanner{ctx: ctx, opts: &opts, chain: follows, compiled: inforce.NewCache(), work: work, order: order, batch: newBatch()}
		for _, l := range logs {
			s.scan(l)
		}

		s.flush()
	})

	for range max(1, opts.Workers) {
		group.Go(func() {
			for b := range work {
				b.decide()
			}
		})
	}

	total := newTally()

	for b := range order {
		<-b.done

		total.Dropped += b.dropped
		total.Skipped += b.skipped

		for i := range b.lines {
			total.add(b.lines[i].at, b.verdicts[i])
		}

		if opts.Progress != nil {
			opts.Progress(total.Decisions)
		}
	}

	group.Wait()

	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot decide all again: %w", err)
	}

	return total.summary(), nil
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// decide decides the lines of a batch.
func (b *batch) decide() {
	defer close(b.done)

	b.verdicts = make([]verdict, len(b.lines))

	for i := range b.lines {
		l := &b.lines[i]

		if l.err != nil {
			b.verdicts[i].err = l.err
		} else {
			b.verdicts[i] = l.by.again(l)
		}

		l.text, l.basis = nil, nil
	}
}

// scanner reads logs and hands their lines on.
type scanner struct {
	ctx         context.Context //nolint:containedctx // It lives as long as Run.
	opts        *Options
	chain       *chain
	compiled    *inforce.Cache
	work, order chan<- *batch
	batch       *batch
}

// errLine is the cause where a line is none of a log.
var errLine = errors.New("it is no line of a log of decisions")

// scan reads a log.
func (s *scanner) scan(l Log) {
	in, err := l.Open()
	if err != nil {
		s.add(numbered{at: at{log: l.Name}, err: err})

		return
	}
	defer in.Close() //nolint:errcheck // It was read.

	read, err := newLines(in)
	if err != nil {
		s.add(numbered{at: at{log: l.Name}, err: err})

		return
	}

	by := &logged{
		compiled: s.compiled, policies: &s.opts.Policies, about: s.opts.About, chain: s.chain, byDigest: map[string]*basis{},
	}

	for s.ctx.Err() == nil {
		text, err := read.next()
		where := at{log: l.Name, line: read.number}

		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, errTruncated):
			if !json.Valid(text) {
				s.add(numbered{at: where, err: err})

				return
			}

			s.line(by, where, text) // It is whole but for its end.

			return
		case errors.Is(err, errLong):
			s.add(numbered{at: where, err: err})
		case err != nil:
			s.add(numbered{at: at{log: l.Name}, err: fmt.Errorf("cannot read on after line %d: %w", read.number-1, err)})

			return
		default:
			s.line(by, where, text)
		}
	}
}

// decisionStart is how the line of a decision starts, as it is written: others are read
// here.
//
//nolint:gochecknoglobals // A constant.
var decisionStart = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, decisionlog.Version, decisionlog.KindDecision)

// digestIn is the digest of what was in force, which is near the start of a decision's line;
// empty where it is not found.
func digestIn(text []byte) string {
	_, rest, _ := bytes.Cut(text, []byte(`"inForce":"`))
	digest, _, _ := bytes.Cut(rest, []byte(`"`))

	return string(digest)
}

// line reads a line.
func (s *scanner) line(by *logged, where at, text []byte) {
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}

	if bytes.HasPrefix(text, decisionStart) {
		s.add(numbered{at: where, text: text, by: by, basis: by.find(digestIn(text))})

		return
	}

	var header decisionlog.Header
	if err := json.Unmarshal(text, &header); err != nil {
		s.add(numbered{at: where, err: fmt.Errorf("cannot read line: %w", err)})

		return
	}

	switch {
	case header.APIVersion == "" || header.Kind == "":
		s.add(numbered{at: where, err: errLine})
	case header.APIVersion != decisionlog.Version:
		s.batch.skipped++
	case header.Kind == decisionlog.KindDecision:
		s.add(numbered{at: where, text: text, by: by})
	case header.Kind == decisionlog.KindInForce:
		if err := by.add(text, where.line); err != nil {
			s.add(numbered{at: where, err: err})
		}
	case header.Kind == decisionlog.KindDropped:
		var dropped decisionlog.Dropped
		if err := json.Unmarshal(text, &dropped); err != nil {
			s.add(numbered{at: where, err: fmt.Errorf("cannot read line: %w", err)})
		}

		s.batch.dropped += dropped.Decisions
	default:
		s.batch.skipped++
	}
}

// add adds a line to the batch.
func (s *scanner) add(l numbered) {
	s.batch.lines = append(s.batch.lines, l)

	if s.batch.bytes += len(l.text); len(s.batch.lines) >= maxBatch || s.batch.bytes >= maxBatchBytes {
		s.flush()
	}
}

// flush hands the batch on.
func (s *scanner) flush() {
	s.order <- s.batch
	s.work <- s.batch
	s.batch = newBatch()
}
