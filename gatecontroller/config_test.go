// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"testing"
	"time"
)

func TestKindsThatNothingServesAreLookedUpSoonAndThenLessOften(t *testing.T) {
	c := &configuration{}
	missing := []kindName{{kind: "Database"}}

	for i, step := range []struct {
		missing  []kindName
		complete bool
		want     time.Duration
	}{
		{nil, true, time.Minute},
		{missing, true, 250 * time.Millisecond},
		{missing, true, 500 * time.Millisecond},
		{missing, true, time.Second},
		{append(missing, kindName{kind: "Network"}), true, 250 * time.Millisecond},
		{missing, true, 250 * time.Millisecond},
		{nil, false, 250 * time.Millisecond},
		{nil, false, 500 * time.Millisecond},
		{nil, true, time.Minute},
		{nil, false, 250 * time.Millisecond},
	} {
		if got := c.again(step.missing, step.complete); got != step.want {
			t.Errorf("step %d: look again after %s, want %s", i, got, step.want)
		}
	}

	for range 20 {
		c.again(missing, true)
	}

	if got := c.again(missing, true); got != 10*time.Second {
		t.Errorf("after a while: %s", got)
	}
}
