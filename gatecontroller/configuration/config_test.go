// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

func TestKindsThatNothingServesAreLookedUpSoonAndThenLessOften(t *testing.T) {
	c := &Reconciler{}
	missing := []kind.Name{{Kind: "Database"}}

	for i, step := range []struct {
		missing  []kind.Name
		complete bool
		want     time.Duration
	}{
		{nil, true, time.Minute},
		{missing, true, 250 * time.Millisecond},
		{missing, true, 500 * time.Millisecond},
		{missing, true, time.Second},
		{append(missing, kind.Name{Kind: "Network"}), true, 250 * time.Millisecond},
		{missing, true, 250 * time.Millisecond},
		{nil, false, 250 * time.Millisecond},
		{nil, false, 500 * time.Millisecond},
		{nil, true, time.Minute},
		{nil, false, 250 * time.Millisecond},
	} {
		if got := c.requeueAfter(step.missing, step.complete); got != step.want {
			t.Errorf("step %d: look again after %s, want %s", i, got, step.want)
		}
	}

	for range 20 {
		c.requeueAfter(missing, true)
	}

	if got := c.requeueAfter(missing, true); got != 10*time.Second {
		t.Errorf("after a while: %s", got)
	}
}
