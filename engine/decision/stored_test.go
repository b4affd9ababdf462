// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
)

func TestWhatARecordHasNoRoomForIsNoField(t *testing.T) {
	t.Parallel()

	for field, want := range map[string]string{
		"spec.size": "spec.size is 52 (last allowed: (unset))",
		"(more)":    "more fields, which the record has no room for",
	} {
		if got := stamp.DescribeStored(v1alpha1.HeldChange{Field: field, To: "52"}); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}
