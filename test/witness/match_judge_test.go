// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// TestTheWitnessFindsWhatIsNotAllowed has it judge a database "x" that was made
// at 0 s with 5 connections, and was set to 7 outside at 10 s.
func TestTheWitnessFindsWhatIsNotAllowed(t *testing.T) {
	t.Parallel()

	const limit = "spec.forProvider.connectionLimit"

	var (
		start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		at    = func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
		sets  = func(n int) string { return fmt.Sprintf(`ALTER DATABASE "x" CONNECTION LIMIT %d`, n) }
		does  = func(seconds int, text string) statement {
			return statement{at: at(seconds), user: stack.PostgreSQLProvider, text: text}
		}
		ticket = func(seconds int, name, value string) asking {
			return asking{deed: deed{kindDatabase, limit, value}, at: at(seconds), ticket: name}
		}
		window = asking{at: at(11), window: "w"}
	)

	tests := map[string]struct {
		asked    []asking
		executed []statement
		// traced are tickets with the values that a trace gives them, windows those
		// that a gate names; killed is when the provider was, in seconds.
		traced  map[string]string
		windows []string
		killed  []int
		// wrong is in what is said of the statements, "" if they were asked for.
		wrong string
	}{
		"a change": {
			asked: []asking{ticket(2, "t", "6")}, traced: map[string]string{"t": "6"},
			executed: []statement{does(3, sets(6))},
		},
		"a change that nobody asked for": {
			executed: []statement{does(3, sets(6))}, wrong: "was not asked for",
		},
		"a change before it was asked for": {
			asked: []asking{ticket(4, "t", "6")}, traced: map[string]string{"t": "6"},
			executed: []statement{does(3, sets(6))}, wrong: "was not asked for",
		},
		"a change without a trace": {
			asked:    []asking{ticket(2, "t", "6")},
			executed: []statement{does(3, sets(6))}, wrong: "0 traces",
		},
		"a change twice": {
			asked: []asking{ticket(2, "t", "6")}, traced: map[string]string{"t": "6"},
			executed: []statement{does(3, sets(6)), does(8, sets(6))}, wrong: "for the same ticket",
		},
		"a change twice for the provider was killed": {
			asked: []asking{ticket(2, "t", "6")}, traced: map[string]string{"t": "6"}, killed: []int{4},
			executed: []statement{does(3, sets(6)), does(8, sets(6))},
		},
		"an unknown statement": {
			executed: []statement{does(3, `ALTER DATABASE "x" RENAME TO "y"`)}, wrong: "nobody knows what this is",
		},
		"a repair in a window": {
			asked: []asking{window}, windows: []string{"w"},
			executed: []statement{does(12, sets(5))},
		},
		"a repair in a window while another change is on its way": {
			asked: []asking{window, ticket(12, "t", "6")}, windows: []string{"w"},
			executed: []statement{does(13, sets(5))},
		},
		"a repair while a change is on its way": {
			asked:    []asking{ticket(12, "t", "6")},
			executed: []statement{does(13, sets(5))}, wrong: `no trace of ticket "t"`,
		},
		"a repair in a window that opened nothing": {
			asked:    []asking{window},
			executed: []statement{does(12, sets(5))}, wrong: `no trace of window "w"`,
		},
		"a repair without a window": {
			executed: []statement{does(12, sets(5))}, wrong: "nothing was asked for since",
		},
		"a repair in a window that was before": {
			asked: []asking{{at: at(9), window: "w"}}, windows: []string{"w"},
			executed: []statement{does(12, sets(5))}, wrong: "nothing was asked for since",
		},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x, seen := subject{kindDatabase, "x"}, newHistory()
			seen.traces[x], seen.values[x], seen.windows[x] = map[cause]bool{}, map[deed]map[cause]bool{}, map[string]bool{}

			create := cause{field: "create", initiator: hansName, generation: 1}
			seen.traces[x][create] = true
			seen.values[x][deed{kindDatabase, limit, "5"}] = map[cause]bool{create: true}

			for ticket, value := range tt.traced {
				c := cause{field: limit, initiator: hansName, ticket: ticket, generation: 2}
				seen.traces[x][c] = true
				seen.values[x][deed{kindDatabase, limit, value}] = map[cause]bool{c: true}
			}

			for _, w := range tt.windows {
				seen.windows[x][w] = true
			}

			j := &judge{name: "x", seen: seen, asked: tt.asked}
			for _, seconds := range tt.killed {
				j.killed = append(j.killed, at(seconds))
			}

			all := slices.Concat([]statement{
				does(0, `CREATE DATABASE "x" TEMPLATE "template0" CONNECTION LIMIT 5`),
				{at: at(10), user: "postgres", text: sets(7)},
			}, tt.executed)
			slices.SortFunc(all, func(a, b statement) int { return a.at.Compare(b.at) })

			got := strings.Join(j.judge(all), "\n")
			if (got == "") != (tt.wrong == "") || !strings.Contains(got, tt.wrong) {
				t.Errorf("it says %q, want %q", got, tt.wrong)
			}
		})
	}
}
