// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"testing"
	"time"
)

func TestTheEnvironmentSaysHowLongASlowMachineMayTake(t *testing.T) {
	t.Setenv(variable, "")

	if got := limit(); got != usual {
		t.Errorf("the limit is %s, want %s", got, usual)
	}

	t.Setenv(variable, "15m")

	if got := limit(); got != 15*time.Minute {
		t.Errorf("the limit is %s, want 15m", got)
	}
}

func TestALimitThatIsNoTimeIsNotIgnored(t *testing.T) {
	for _, text := range []string{"15", "soon", "-1m", "0s"} {
		t.Run(text, func(t *testing.T) {
			t.Setenv(variable, text)

			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken for a time", text)
				}
			}()

			limit()
		})
	}
}
