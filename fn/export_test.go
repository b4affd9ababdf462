// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// WithClock sets the clock by which windows are judged.
func WithClock(now func() time.Time) Option {
	return func(f *Function) { f.now = now }
}

// AtMost is atMost.
func AtMost(rsp *fnv1.RunFunctionResponse) int { return atMost(rsp) }

// Again reports whether a request is answered as it was before.
func (f *Function) Again(req *fnv1.RunFunctionRequest) bool {
	_, _, ok := f.answers.again(req, f.now())

	return ok
}
