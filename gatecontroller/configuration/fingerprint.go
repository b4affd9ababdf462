// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"encoding/json"
	"fmt"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// fingerprint distinguishes what policies say of gates.
func fingerprint(policies []v1alpha1.AllowancePolicy) (string, error) {
	settings := map[string]*v1alpha1.GateSettings{}

	for i := range policies {
		if g := policies[i].Spec.Gate; g != nil {
			settings[policies[i].GetName()] = g
		}
	}

	raw, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("cannot encode gate settings: %w", err)
	}

	return string(raw), nil
}
