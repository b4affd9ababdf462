// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patience says how long tests wait for what must happen.
//
// A test waits for what happens, not for a time: the limit is only there so that
// a test ends in which it does not. So it is one for all, and far longer than
// anything takes on a busy machine. How long something took, where that matters,
// a test measures by itself.
package patience

import (
	"fmt"
	"os"
	"time"
)

// variable holds another limit, such as 15m, for a machine that is slower still.
const variable = "KAUSALITY_PATIENCE"

// usual is the limit otherwise. With two cores and a load of 10, what takes
// longest takes a fifth of it.
const usual = 5 * time.Minute

// Limit is how long to wait.
//
//nolint:gochecknoglobals // Read once: it is of the machine.
var Limit = limit()

// limit panics where the variable holds no time: waiting for another one than
// was asked for would not be seen.
func limit() time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}

	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		panic(fmt.Sprintf("cannot use %s=%q: want a time, such as 15m", variable, text))
	}

	return d
}
