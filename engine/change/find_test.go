// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

func TestAnElementIsFoundByItsValue(t *testing.T) {
	at := change.Find([]any{"a", int64(1), "b", "a", map[string]any{"x": int64(2)}, nil})

	for _, tc := range []struct {
		value any
		want  int
	}{
		{"a", 0}, {"b", 2}, {"c", -1}, {int64(1), 1}, {float64(1), 1}, {int64(2), -1}, {map[string]any{"x": float64(2)}, 4}, {nil, 5}, {"1", -1},
	} {
		if got := at(tc.value); got != tc.want {
			t.Errorf("%v is found at %d, want %d", tc.value, got, tc.want)
		}
	}
}
