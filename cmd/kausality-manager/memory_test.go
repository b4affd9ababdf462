// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestGCPercent(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   uint64
		want   int
	}{
		"Unknown": {reason: "Until the first collection nothing is known.", live: 0, want: 100},
		"Small":   {reason: "A small heap is collected as seldom as by default.", live: 10 << 20, want: 100},
		"Medium":  {reason: "So much garbage may always lie about.", live: 30 << 20, want: 80},
		"Large":   {reason: "A large heap is collected more often.", live: 60 << 20, want: 40},
		"Huge":    {reason: "It is never collected all the time.", live: 1 << 40, want: 40},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := gcPercent(tc.live); got != tc.want {
				t.Errorf("%s\ngcPercent(%d): got %d, want %d", tc.reason, tc.live, got, tc.want)
			}
		})
	}
}
