// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Interval is how often a test looks for what must happen.
const Interval = 100 * time.Millisecond

// Eventually looks until a check passes. Its last error says what is missing.
func Eventually(ctx context.Context, what string, check func(ctx context.Context) error) error {
	var last error

	err := wait.PollUntilContextTimeout(ctx, Interval, Limit, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err // Not the end of our patience, in other words.
		}

		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s did not happen within %s: %w", what, Limit, last)
	}

	return nil
}
