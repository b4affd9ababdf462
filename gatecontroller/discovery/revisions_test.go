// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestARevisionThatChangesWhatRunsPrompts has CompositionRevisions come and go. An XR
// that changes to one without the function is reported only once that one is known.
func TestARevisionThatChangesWhatRunsPrompts(t *testing.T) {
	const (
		stores = "spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: Store}, "
		runs   = stores + "pipeline: [{step: kausality, functionRef: {name: function-kausality}}]}"
		not    = stores + "pipeline: [{step: other, functionRef: {name: function-other}}]}"
		others = "spec: {compositeTypeRef: {apiVersion: shop.example.org/v1, kind: Mall}, pipeline: [{step: other, functionRef: {name: function-other}}]}"
	)

	for name, tc := range map[string]struct {
		reason, revision string
		known            map[string]bool
		prompts          bool
	}{
		"Runs":        {reason: "Its kinds have to be followed.", revision: runs, prompts: true},
		"RunsStill":   {reason: "Nothing is new.", revision: runs, known: map[string]bool{"r": true}},
		"Gone":        {reason: "Maybe its kinds need not be followed any more.", known: map[string]bool{"r": true}, prompts: true},
		"RunsNot":     {reason: "XRs that ran the function may use it.", revision: not, prompts: true},
		"RunsNotOf":   {reason: "Other XRs never ran it.", revision: others},
		"RunsNotYet":  {reason: "It is known.", revision: not, known: map[string]bool{"r": false}},
		"NeverRanAny": {reason: "Nobody used it to any effect.", known: map[string]bool{"r": false}},
	} {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder()

			if tc.revision != "" {
				live = live.WithObjects(fixture.Parse(t, "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositionRevision\nmetadata: {name: r}\n"+tc.revision))
			}

			c := &Kinds{Functions: []string{"function-kausality"}, Prompt: watch.NewPrompt(), known: Findings{
				Revisions: tc.known, xrs: map[schema.GroupKind]bool{{Group: "shop.example.org", Kind: "Store"}: true},
			}}
			r := &Revisions{Kinds: c, Gvk: schema.GroupVersionKind{
				Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision",
			}, Reader: live.Build()}

			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "r"}}); err != nil {
				t.Fatal(err)
			}

			prompted := false
			select {
			case <-c.Prompt.Now:
				prompted = true
			default:
			}

			if prompted != tc.prompts {
				t.Errorf("%s\nprompted %v, want %v", tc.reason, prompted, tc.prompts)
			}
		})
	}
}
