// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

// ErrOther is the cause of what a check has to say that found something else than
// it searched for.
var ErrOther = errors.New("not as expected")

// Eventually looks until a check passes, and logs how long that took. As
// scenario.Eventually loses patience the test ends.
func Eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()

	start := time.Now()
	if err := scenario.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}

	t.Logf("%s: %s", what, time.Since(start).Round(time.Millisecond))
}
