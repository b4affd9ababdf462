// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// defaultServiceAccount is the user Crossplane's Helm chart makes it.
const defaultServiceAccount = "system:serviceaccount:crossplane-system:crossplane"

// parseInput reads the step's input strictly: an unknown field is an error
// that names it.
func parseInput(req *fnv1.RunFunctionRequest) (*v1alpha1.Input, error) {
	in := &v1alpha1.Input{}

	if req.GetInput() != nil {
		raw, err := req.GetInput().MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("cannot read the step's input: %w", err)
		}

		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()

		if err := dec.Decode(in); err != nil {
			return nil, fmt.Errorf("cannot read the step's input: %w", err)
		}
	}

	if in.Mode == "" {
		in.Mode = v1alpha1.ModeHold
	}

	modes := []v1alpha1.Mode{v1alpha1.ModeHold, v1alpha1.ModeFatal, v1alpha1.ModeAudit}
	if !slices.Contains(modes, in.Mode) {
		return nil, fmt.Errorf("cannot read the step's input: mode %q is not one of %v", in.Mode, modes)
	}

	repairs := []v1alpha1.Repair{"", v1alpha1.RepairApply, v1alpha1.RepairHold}
	if !slices.Contains(repairs, in.Repair) {
		return nil, fmt.Errorf("cannot read the step's input: repair %q is not one of %v", in.Repair, repairs[1:])
	}

	if in.ServiceAccount == "" {
		in.ServiceAccount = defaultServiceAccount
	}

	return in, nil
}
