// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// A Finding is one of the doctor's.
type Finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity"`
	Object   string `json:"object"`
	What     string `json:"what"`
	Why      string `json:"why"`
	Remedy   string `json:"remedy"`
}

// Doctor returns the exit code and the findings of the doctor, which the administrator runs with more flags.
func (s Shell) Doctor(ctx context.Context, flags ...string) (int, []Finding, error) {
	r, err := s.Run(ctx, Admin, "kubectl", append([]string{"kausality", "doctor", "-o", "json"}, flags...)...)
	if err != nil {
		return 0, nil, err
	}

	doc := struct {
		Kind     string    `json:"kind"`
		Findings []Finding `json:"findings"`
	}{}

	if err := json.Unmarshal([]byte(r.Stdout), &doc); err != nil || doc.Kind != "Diagnosis" {
		return r.Code, nil, fmt.Errorf("cannot read diagnosis: %+v: %w", r, errors.Join(err, errOther))
	}

	return r.Code, doc.Findings, nil
}
