// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestNoTwoEnforcementsHaveAWebhookOfOneName(t *testing.T) {
	const spec = `, spec: {match: {resourceRules: [{apiGroups: [apps], resources: [deployments]}]}, validationActions: [Deny]}}`

	list := fixture.Documents[v1alpha1.Enforcement](t, `{metadata: {name: foo}`+spec, `{metadata: {name: scale.foo}`+spec, `{metadata: {name: foo.scale}`+spec,
		`{metadata: {name: foo.scale-enforcement.kausality.io}`+spec)
	seen := map[string]int{}

	for _, w := range (Options{}).enforcing(Covered(list, fixture.ServedKinds())) {
		seen[w.Name]++
	}

	if len(seen) != 2*len(list) {
		t.Errorf("names: %s", cmp.Diff(nil, seen))
	}
}
