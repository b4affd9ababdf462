// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatWaitsIsCompleted by the objects that people edit, and by the digests of changes that
// can be decided about.
func TestWhatWaitsIsCompleted(t *testing.T) {
	t.Parallel()

	c, _ := fakeCluster(parse(t, pendingClaim), parse(t, pendingDB), pendingIn(t, "team", "a"), pendingIn(t, "other", "b"))

	for text, want := range map[string][]string{
		"": {"claim.shop.example.org/a"}, "claim.shop.example.org/": {"claim.shop.example.org/a"}, "database": nil,
	} {
		if diff := cmp.Diff(want, c.pendingNames(t.Context(), []string{"claim.shop.example.org/db"}, text)); diff != "" {
			t.Errorf("%q: -want, +got:\n%s", text, diff)
		}
	}

	port := "aaaa00000000\tInstance db-1 spec.forProvider.rules[2].port: 80 -> 443"
	password := "aaaa11111111\tInstance db-1 spec.forProvider.password: (masked) -> (masked)"

	for text, want := range map[string][]string{
		"": {"dddd00000000\tInstance old is deleted", port, password}, "aaaa0": {port}, "sha256:aaaa": {port, password}, "e": nil,
	} {
		if diff := cmp.Diff(want, c.changeNames(t.Context(), []string{"claim/db"}, text)); diff != "" {
			t.Errorf("--change %q: -want, +got:\n%s", text, diff)
		}
	}

	if got := c.changeNames(t.Context(), []string{"claim/none"}, ""); got != nil {
		t.Errorf("of what is not there: %v", got)
	}
}
