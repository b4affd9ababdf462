// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/internal/replay"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// decisions is where manager and function log what they decide.
type decisions struct{ dir string }

func (d decisions) manager() string  { return filepath.Join(d.dir, "manager.log") }
func (d decisions) function() string { return filepath.Join(d.dir, "function.log") }

func (d decisions) flags(file string) []string {
	return []string{"--decision-log=" + file, "--decision-log-rate=0"}
}

// TestWhatIsSuggestedOfLogsLetsThroughWhatWasHeld has nobody but the logs tell what a function makes of
// what.
func TestWhatIsSuggestedOfLogsLetsThroughWhatWasHeld(t *testing.T) {
	world.Long(t)

	ctx := t.Context()

	const shelf = "shelf.notes.example.org/upper"

	// 1. A shelf, and a change that is held for want of a policy.
	succeeds(ctx, t, "", "apply", "-f", "testdata/shelves.yaml")
	succeeds(ctx, t, "", "wait", "--for=condition=Established", "--timeout="+patience.Limit.String(), "crd/shelves.notes.example.org")
	succeeds(ctx, t, "", "apply", "-f", "testdata/shelf.yaml")
	succeeds(ctx, t, "", "wait", "--for=condition=Kausality", "--timeout="+patience.Limit.String(), shelf, "-n", "default")
	succeeds(ctx, t, "", "patch", shelf, "-n", "default", "--type=merge", "-p", `{"spec": {"books": "poems"}}`)
	succeeds(ctx, t, "", "wait", "--for=condition=Kausality=False", "--timeout="+patience.Limit.String(), shelf, "-n", "default")

	// 2. What is suggested of a Composition that does not say what it makes of what.
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	args := []string{
		"kausality", "suggest", "-f", opaque(t), "--from-log", logs.manager(), "--from-log", logs.function(), "--subject=Group=platform-team",
		"--subject=Group=system:masters",
	}

	if err := scenario.Eventually(ctx, "suggest", func(ctx context.Context) error {
		r := kubectl(ctx, t, "nobody", args...)

		if r.Code != 3 || !strings.Contains(r.Stdout, "- {kind: ConfigMap, mutations: [data.books]}") || !strings.Contains(r.Stdout, "fields: [spec.books]") {
			return fmt.Errorf("exit code %d, %s%s: %w", r.Code, r.Stdout, r.Stderr, world.ErrOther)
		}

		if strings.Contains(r.Stdout, "wood]") || strings.Contains(r.Stdout, "poems") {
			t.Errorf("it suggests what was not seen, or quotes a value: %s", r.Stdout)
		}

		return os.WriteFile(policies, []byte(r.Stdout), 0o600)
	}); err != nil {
		t.Fatal(err)
	}

	// 3. Decided again by that, it follows.
	r := kubectl(ctx, t, "nobody", "kausality", "replay", logs.manager(), logs.function(), "--policies", policies, "--chains", "-o", "json")

	var got replay.Summary
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}

	if !slices.ContainsFunc(got.Changes, func(c replay.Change) bool {
		return c.Kind == "ConfigMap" && c.Field == "data.books" && c.Before == "Held" && c.After == "Allowed"
	}) {
		t.Errorf("replay: %s", r.Stdout)
	}

	// 4. So it does in the cluster.
	succeeds(ctx, t, "", "apply", "-f", policies)
	succeeds(ctx, t, "", "wait", "--for=condition=Ready", "--timeout="+patience.Limit.String(), "-f", policies)
	succeeds(ctx, t, "", "patch", shelf, "-n", "default", "--type=merge", "-p", `{"spec": {"books": "atlases"}}`)
	succeeds(ctx, t, "", "wait", "--for=jsonpath={.data.books}=atlases", "--timeout="+patience.Limit.String(), "configmap", "-n", "default",
		"-l", "crossplane.io/composite=upper")
}

// opaque is a file with shelves, whose Composition has another function.
func opaque(t *testing.T) string {
	t.Helper()

	raw, err := os.ReadFile("testdata/shelves.yaml")
	if err != nil {
		t.Fatal(err)
	}

	text := string(raw)
	from, to := strings.Index(text, "    input:\n"), strings.Index(text, "  - step: ready\n")
	text = strings.Replace(text[:from]+text[to:], "function-patch-and-transform", "function-kcl", 1)
	path := filepath.Join(t.TempDir(), "shelves.yaml")

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}
