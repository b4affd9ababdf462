// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/gates"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// Whatever is written to a policy has Crossplane compose every XR anew that
// requires it, also when a manager is restarted.
func TestAPolicySaysWhatItSaidUntilItsKindsAreReconciled(t *testing.T) {
	kinds := []kind.Served{{GVK: schema.GroupVersionKind{Group: "n.example.org", Version: "v1", Kind: "Nop"}, Managed: true}}
	a := types.NamespacedName{Name: "a"}

	cases := map[string]struct {
		reason string
		since  func(c *Reporter)
		want   bool
	}{
		"Restarted": {reason: "Nothing has been looked at yet.", since: func(*Reporter) {}, want: true},
		"Still":     {reason: "It is as it was.", since: func(c *Reporter) { c.Ungated.Set(kinds[0].GVK, a, true) }, want: true},
		"Gated":     {reason: "It has a gate now.", since: func(c *Reporter) { c.Ungated.Set(kinds[0].GVK, a, false) }},
		"Gone":      {reason: "There are none to look at.", since: func(*Reporter) { time.Sleep(5 * time.Minute) }},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list := fixture.Documents[v1alpha1.AllowancePolicy](t, `{metadata: {generation: 3}, spec: {match: {kind: Yard}, allow: [{kind: Nop, apiGroup: n.example.org}]}}`)
				before := &Reporter{Ungated: gates.NewUngated(watch.NewPrompt())}
				before.Ungated.Set(kinds[0].GVK, a, true)
				before.reportUngated(&list[0], kinds)

				said := list[0].DeepCopy()
				c := &Reporter{Ungated: gates.NewUngated(watch.NewPrompt())}
				c.reportUngated(&list[0], kinds)

				if diff := cmp.Diff(said.Status, list[0].Status); diff != "" || len(said.Status.Conditions) != 1 {
					t.Errorf("restarted: -want, +got:\n%s", diff)
				}

				tc.since(c)

				select {
				case <-c.Ungated.Prompt.Now:
				default:
					if name == "Gated" {
						t.Error("Nobody would look at the policy.")
					}
				}

				c.reportUngated(&list[0], kinds)

				if got := len(list[0].Status.Conditions) > 0; got != tc.want {
					t.Errorf("%s\nconditions: %v", tc.reason, list[0].Status.Conditions)
				}
			})
		})
	}
}
