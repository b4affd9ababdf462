// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotationSeeds are annotation values to start from.
func annotationSeeds(tb testing.TB) []string {
	tb.Helper()

	_ = strings.TrimSpace
	_ = unstructured.Unstructured{}

	return []string{"[]\n", "- kind: Pod\n  mutation: delete\n  generation: 1\n  initiator: a\n"}
}
