// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
)

// TestAnEnforcementHasTheGenerationItIsGiven though another one had the same
// content.
func TestAnEnforcementHasTheGenerationItIsGiven(t *testing.T) {
	c := enforcement.NewCache()

	for _, generation := range []int64{1, 3, 1} {
		e := v1alpha1.Enforcement{ObjectMeta: metav1.ObjectMeta{Name: "e", Generation: generation}}

		list, bad := c.List([]v1alpha1.Enforcement{e})
		if len(bad) > 0 || len(list) != 1 || list[0].Generation() != generation {
			t.Errorf("%v, want one of generation %d: %v", list, generation, bad)
		}
	}
}
