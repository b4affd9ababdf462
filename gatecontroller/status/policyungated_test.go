// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAPolicyReportsWhichOfItsKindsAreNotGated(t *testing.T) {
	c := &Reporter{Ungated: gates.NewUngated(watch.NewPrompt())}
	list := fixture.Documents[v1alpha1.AllowancePolicy](t, `{metadata: {generation: 3}, spec: {match: {kind: Yard}, allow: [{kind: Widget}, {kind: Nop, apiGroup: n.example.org}]}}`)
	kinds := []kind.Served{
		{GVK: schema.GroupVersionKind{Group: "t.example.org", Kind: "Widget"}, Ungateable: true},
		{GVK: schema.GroupVersionKind{Group: "n.example.org", Kind: "Nop"}, Managed: true},
		{GVK: schema.GroupVersionKind{Group: "o.example.org", Kind: "Nop"}, Ungateable: true},
	}
	c.Ungated.Set(kinds[1].GVK, types.NamespacedName{Name: "a"}, true)

	c.reportUngated(&list[0], kinds)

	const want = "the provider's actions are not gated: Widget.t.example.org has no spec.managementPolicies; " +
		"the provider of Nop.n.example.org does not support management policies"
	if got := list[0].Status.Conditions; len(got) != 1 || got[0].Message != want || got[0].Status != metav1.ConditionFalse {
		t.Errorf("conditions: %v", got)
	}

	c.reportUngated(&list[0], kinds[2:])

	if got := list[0].Status.Conditions; len(got) != 0 {
		t.Errorf("all are gated: %v", got)
	}
}
