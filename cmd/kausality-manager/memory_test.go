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
		"Tiny":    {reason: "Even a tiny heap is collected now and then.", live: 4 << 20, want: 200},
		"Small":   {reason: "A small heap is collected less often than by default.", live: 15 << 20, want: 160},
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

func TestGarbageIsCollectedInCalmMoments(t *testing.T) {
	const live, goal = 100, 180

	cases := map[string]struct {
		reason      string
		before, now heap
		want        bool
	}{
		"Unknown": {reason: "Until the first collection nothing is known."},
		"Little":  {reason: "There is hardly any garbage.", before: heap{objects: 135}, now: heap{live, goal, 136}},
		"Calm":    {reason: "Next time it would be collected in the middle of something.", before: heap{objects: 143}, now: heap{live, goal, 144}, want: true},
		"Busy":    {reason: "Something is going on right now.", before: heap{objects: 130}, now: heap{live, goal, 144}},
		"Just":    {reason: "It was collected since.", before: heap{objects: 179}, now: heap{live, goal, 100}},
		"Over":    {reason: "It is being collected.", before: heap{objects: 170}, now: heap{200, 180, 190}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.now.collects(tc.before); got != tc.want {
				t.Errorf("%s\ncollects: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
