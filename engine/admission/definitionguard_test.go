// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"
)

// TestTheGuardOfADefinitionSaysWhatIsLostWithoutIt because the message is all that a user sees.
func TestTheGuardOfADefinitionSaysWhatIsLostWithoutIt(t *testing.T) {
	governed := []string{"nothing is governed any more", "--all"}
	want := map[string][]string{
		"kausality-crd-allowancepolicies": governed, "kausality-crd-enforcements": governed, "kausality-crd-upgradeallowances": governed,
		"kausality-crd-allowancebindings": {"those whom they name may initiate nothing", "kubectl delete allowancebindings.kausality.io --all -A"},
	}

	for _, g := range DefinitionGuards(true) {
		name, message := g.Policy.GetName(), g.Policy.Spec.Validations[0].Message

		parts, ok := want[name]
		if !ok {
			t.Errorf("guard %s is not expected", name)
		}

		for _, part := range parts {
			if !strings.Contains(message, part) {
				t.Errorf("guard %s says %q, and not %q", name, message, part)
			}
		}

		delete(want, name)
	}

	if len(want) > 0 {
		t.Errorf("there are no guards %v", want)
	}
}
