// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/replay"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// observe adds what was seen: what logs show is first. A terminal is told how far it is.
func (r *materialReader) observe(ctx context.Context, m *suggestion.Material, show *progress) error {
	if len(r.logs) == 0 {
		return nil
	}

	var seen suggestion.Log

	decisions := 0

	read, err := replay.Read(ctx, openLogs(r.logs, r.in), func(log string, line int, d *decisionlog.Decision) {
		seen.Add(fmt.Sprintf("%s:%d", log, line), d)

		decisions++
		show.showf("%s read", plural(decisions, "decision"))
	})
	show.done()

	if err != nil {
		return err
	}

	r.unread(read)

	logged := seen.Observed()
	if m.Observed != nil {
		logged = slices.AppendSeq(logged, m.Observed)
	}

	m.Observed = slices.Values(logged)

	return nil
}

// unread notes what could not be read of logs.
func (r *materialReader) unread(read replay.Reading) {
	if n := int(read.Dropped); n > 0 {
		r.problems = append(r.problems, fmt.Sprintf("%s %s left out of the logs: what they would show is not known",
			plural(n, "decision"), verb(n, "was", "were")))
	}

	for _, p := range read.Problems {
		at := p.Log
		if p.Line > 0 {
			at += fmt.Sprintf(":%d", p.Line)
		}

		r.problems = append(r.problems, at+": "+p.Message)
	}
}
