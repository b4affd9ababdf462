// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decisionlog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// BenchmarkRecording decides all scenarios of the corpus, and records what was decided: a
// record has B/decision, and takes ns/decision beside what deciding takes.
func BenchmarkRecording(b *testing.B) {
	// Those that show what expressions may cost at most take longer than thousands of others.
	all := slices.DeleteFunc(slices.Clone(recorded(b)), func(r corpus.Recording) bool { return strings.Contains(r.Name, "cost") })

	per := func(b *testing.B, total float64, unit string) {
		b.Helper()
		b.ReportMetric(total/float64(len(all)), unit)
	}

	b.Run("Deciding", func(b *testing.B) {
		for b.Loop() {
			for i := range all {
				decision.Decide(all[i].Request)
			}
		}

		per(b, float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/decision")
	})

	b.Run("Recording", func(b *testing.B) {
		encoders, bytes := make([]decisionlog.Encoder, len(all)), 0 // Policies seldom change between decisions.

		for b.Loop() {
			bytes = 0

			for i := range all {
				entry, err := encoders[i].Encode(all[i].Asked, &all[i].Request, &all[i].Decision)
				if err != nil {
					b.Fatal(err)
				}

				bytes += len(entry.Decision)
			}
		}

		per(b, float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/decision")
		per(b, float64(bytes), "B/decision")
	})
}
