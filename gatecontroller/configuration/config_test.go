// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"testing"
	"time"
)

func TestWhatIsNotCompleteIsCheckedSoonAndThenLessOften(t *testing.T) {
	d := &delay{}

	for i, step := range []struct {
		complete, same bool
		want           time.Duration
	}{
		{true, true, 0},
		{false, false, 250 * time.Millisecond},
		{false, true, 500 * time.Millisecond},
		{false, true, time.Second},
		{false, false, 250 * time.Millisecond},
		{true, false, 0},
		{false, true, 250 * time.Millisecond},
	} {
		if got := d.next(step.complete, step.same); got != step.want {
			t.Errorf("step %d: look again after %s, want %s", i, got, step.want)
		}
	}

	for range 20 {
		d.next(false, true)
	}

	if got := d.next(false, true); got != retryMax {
		t.Errorf("after a while: %s, want %s", got, retryMax)
	}
}
