// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package logfile

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Limits of what waits to be written: as much as a slow disk falls behind for a moment.
const (
	maxQueued      = 4096
	maxQueuedBytes = 64 * 1024 * 1024
)

// closingGrace is how long a disk may take for what waits to be written at the end: less
// than the half of a minute that a pod has.
const closingGrace = 10 * time.Second

// Log is a log of decisions. It is safe for concurrent use. Nil logs nothing.
type Log struct {
	encoder  decisionlog.Encoder
	counters Counters
	limiter  *rate.Limiter
	queue    chan decisionlog.Entry
	// bytes that wait to be written, with what was in force, each once.
	bytes   atomic.Int64
	waiting waiting
	// dropped are the decisions that were left out since the last line that said so.
	dropped atomic.Int64

	stop, stopped chan struct{}
	// grace is how long it may take to write what waits when it is closed.
	grace   time.Duration
	closing sync.Once
	closed  atomic.Bool
	file    *file
}

// New makes a log, and has it written until it is closed; nil where the options name no
// file. Complain is told why the file cannot be written, once until it can be again. The
// error is of options.
func New(opts Options, counters Counters, complain func(error)) (*Log, error) {
	if opts.File == "" {
		return nil, nil //nolint:nilnil // As said above.
	}

	if err := opts.validate(); err != nil {
		return nil, err
	}

	// Rotated files are beside the file itself, and not beside a link to it.
	if target, err := filepath.EvalSymlinks(opts.File); err == nil {
		opts.File = target
	}

	out := newLog(opts, counters, complain)

	go out.run()

	return out, nil
}

// newLog makes a log that nobody writes yet.
func newLog(opts Options, counters Counters, complain func(error)) *Log {
	limit := rate.Inf
	if opts.Rate > 0 {
		limit = rate.Limit(opts.Rate)
	}

	return &Log{
		counters: counters, limiter: rate.NewLimiter(limit, max(1, int(math.Ceil(opts.Rate)))),
		queue: make(chan decisionlog.Entry, maxQueued), stop: make(chan struct{}), stopped: make(chan struct{}),
		grace: closingGrace,
		file:  newFile(opts, complain),
	}
}

// Record logs a decision on a request, or leaves it out where there is no room for it. It
// does not wait, and keeps nothing of what it is given.
func (l *Log) Record(asked decisionlog.Asked, req *request.Request, d *decision.Decision) {
	switch {
	case l == nil:
		return
	case l.full():
		l.drop(reasonQueue)

		return
	case !l.limiter.Allow():
		l.drop(reasonRate)

		return
	}

	entry, err := l.encode(asked, req, d)
	if err != nil {
		l.drop(reasonEncode)

		return
	}

	l.enqueue(entry)
}

// encode encodes a decision. That it panics is an error: the decision was made, and counts.
func (l *Log) encode(asked decisionlog.Asked, req *request.Request, d *decision.Decision) (out decisionlog.Entry, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot encode decision: %w: %v", errInternal, r)
		}
	}()

	return l.encoder.Encode(asked, req, d)
}

// errInternal is the cause of a fault of our own.
var errInternal = errors.New("internal error")

// full reports whether there is no room.
func (l *Log) full() bool {
	return l.closed.Load() || len(l.queue) == cap(l.queue) || l.bytes.Load() > maxQueuedBytes
}

func (l *Log) enqueue(entry decisionlog.Entry) {
	l.bytes.Add(int64(len(entry.Decision)) + l.waiting.add(&entry))

	select {
	case l.queue <- entry:
	default:
		l.dequeued(entry)
		l.drop(reasonQueue)
	}
}

// dequeued notes that an entry does not wait any more.
func (l *Log) dequeued(entry decisionlog.Entry) {
	l.bytes.Add(-int64(len(entry.Decision)) - l.waiting.remove(&entry))
}

// drop counts a decision that is left out.
func (l *Log) drop(reason string) {
	l.dropped.Add(1)
	l.counters.Dropped.WithLabelValues(reason).Inc()
}

// run writes what there is until the log is closed, and then what is left.
func (l *Log) run() {
	defer close(l.stopped)

	for {
		select {
		case entry := <-l.queue:
			l.write(entry)
		case <-l.stop:
			for {
				select {
				case entry := <-l.queue:
					l.write(entry)
				default:
					l.file.close()

					return
				}
			}
		}
	}
}

// write writes an entry, after how many were left out before it.
func (l *Log) write(entry decisionlog.Entry) {
	l.dequeued(entry)

	dropped := l.dropped.Swap(0)

	written, err := l.file.write(entry, dropped)
	l.counters.Bytes.Add(float64(written))

	if err == nil {
		l.counters.Decisions.Inc()

		return
	}

	l.dropped.Add(dropped)

	if reason := reasonWrite; err == errLarge { //nolint:errorlint // It is returned as it is.
		l.drop(reasonSize)
	} else {
		l.drop(reason)
	}
}

// Close writes what waits to be written, and closes the file. What is recorded later is
// left out, and so is what a disk that does not answer has not taken in [closingGrace].
func (l *Log) Close() {
	if l == nil {
		return
	}

	l.closing.Do(func() {
		l.closed.Store(true)
		close(l.stop)
	})

	select {
	case <-l.stopped:
	case <-time.After(l.grace):
	}
}
