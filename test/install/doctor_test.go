// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package install_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// finding is one of the doctor's.
type finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity"`
	Object   string `json:"object"`
	What     string `json:"what"`
}

// checkDoctor checks that the doctor finds the manager of a version, though nothing
// has its usual name, and nothing wrong with it.
func checkDoctor(t *testing.T, plugin, version string) {
	t.Helper()

	world.Eventually(t, "a good diagnosis", func(ctx context.Context) error {
		said, err := exec.CommandContext(ctx, plugin, "doctor", "--output=json", "--kubeconfig", filepath.Join(running.Dir(), "kubeconfig")).Output()

		var found struct {
			Findings []finding `json:"findings"`
		}

		if readErr := json.Unmarshal(said, &found); readErr != nil {
			return fmt.Errorf("%s: %w", said, errors.Join(err, readErr))
		}

		for _, want := range []finding{
			{Check: "manager", What: "The manager " + version + " is at work in namespace " + stack.CrossplaneNamespace +
				", as ValidatingWebhookConfiguration kausality says."},
			{Check: "webhook-reach", Object: "ValidatingWebhookConfiguration kausality", What: "Webhook policies.kausality.io answered a dry-run request."},
			{Check: "certificates", What: "The CA lasts."},
			{
				Check: "certificates", Object: "Secret " + stack.CrossplaneNamespace + "/" + providerName + "-tls-server",
				What: "It is signed by what the API server trusts.",
			},
		} {
			want.Severity = "ok"

			if !slices.Contains(found.Findings, want) {
				return fmt.Errorf("no %+v in %+v: %w", want, found.Findings, world.ErrOther)
			}
		}

		return nil
	})
}
