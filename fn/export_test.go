// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import "time"

// WithClock sets the clock by which windows are judged.
func WithClock(now func() time.Time) Option {
	return func(f *Function) { f.now = now }
}
