// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

// Reading is what was read of logs.
type Reading struct {
	// Decisions that were read, and Dropped those that the logs say were left out.
	Decisions int
	Dropped   int64
	// Problems are lines that cannot be read, in order.
	Problems []Problem
}

// Read calls a function with each decision of logs, in their order, with the log and line that
// it is in. Lines of kinds or versions that are not known are left out, and a last one without
// an end. The error is the context's.
func Read(ctx context.Context, logs []Log, each func(log string, line int, d *decisionlog.Decision)) (Reading, error) {
	var out Reading

	for _, l := range logs {
		if err := out.read(ctx, l, each); err != nil {
			return out, fmt.Errorf("cannot read log %q: %w", l.Name, err)
		}
	}

	return out, nil
}

func (r *Reading) problem(log string, line int, err error) {
	r.Problems = append(r.Problems, Problem{Log: log, Line: line, Message: err.Error()})
}

func (r *Reading) read(ctx context.Context, l Log, each func(string, int, *decisionlog.Decision)) error {
	in, err := l.Open()
	if err != nil {
		r.problem(l.Name, 0, err)

		return nil
	}
	defer in.Close() //nolint:errcheck // It was read.

	from, err := newLines(in)
	if err != nil {
		r.problem(l.Name, 0, err)

		return nil
	}

	for ctx.Err() == nil {
		text, err := from.next()

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTruncated) && !json.Valid(text):
			return nil
		case errors.Is(err, errLong):
			r.problem(l.Name, from.number, err)

			continue
		case err != nil && !errors.Is(err, errTruncated):
			r.problem(l.Name, from.number, err)

			return nil
		}

		if err := r.line(l.Name, from.number, text, each); err != nil {
			r.problem(l.Name, from.number, err)
		}
	}

	return ctx.Err()
}

// line reads one line.
func (r *Reading) line(log string, number int, text []byte, each func(string, int, *decisionlog.Decision)) error {
	if len(text) == 0 {
		return nil
	}

	var header decisionlog.Header
	if err := json.Unmarshal(text, &header); err != nil {
		return fmt.Errorf("cannot read line: %w", err)
	}

	switch {
	case header.APIVersion == "" || header.Kind == "":
		return errLine
	case header.APIVersion != decisionlog.Version:
	case header.Kind == decisionlog.KindDropped:
		var dropped decisionlog.Dropped
		if err := json.Unmarshal(text, &dropped); err != nil {
			return fmt.Errorf("cannot read line: %w", err)
		}

		r.Dropped += dropped.Decisions
	case header.Kind == decisionlog.KindDecision:
		d := &decisionlog.Decision{}
		if err := json.Unmarshal(text, d); err != nil {
			return fmt.Errorf("cannot read decision: %w", err)
		}

		r.Decisions++

		each(log, number, d)
	}

	return nil
}
