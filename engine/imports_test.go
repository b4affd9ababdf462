// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine_test checks what the engine is made of.
package engine_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestTheEngineHasNoClient keeps the engine free of everything that could talk to an API
// server, also by what it imports imports: whoever uses it in CI or in another controller
// need not have these.
func TestTheEngineHasNoClient(t *testing.T) {
	t.Parallel()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}

	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/kausality-io/kausality-crossplane/engine/decision") {
		t.Fatalf("%d packages, and none of the engine", len(packages))
	}

	for _, p := range packages {
		for _, client := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/crossplane/", "net/http/httptest"} {
			if strings.HasPrefix(p, client) {
				t.Errorf("the engine imports %s; run: go list -deps ./engine/... to see by what", p)
			}
		}
	}
}
