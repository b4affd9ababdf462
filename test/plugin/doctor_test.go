// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

// object is one that a test makes or changes.
func object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)

	return u
}

// TestTheDoctorNamesWhatIsBroken breaks one thing after another.
func TestTheDoctorNamesWhatIsBroken(t *testing.T) {
	ctx := t.Context()

	c, err := client.New(running.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	play, err := scenario.New(running, "../../examples", narrator{t})
	if err != nil {
		t.Fatal(err)
	}

	for _, step := range play.Steps()[:2] {
		if err := step.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}

	// 1. All is well, also for somebody who may read little.
	diagnosed(ctx, t)
	found(ctx, t, "ok", "manager", "The manager dev is at work in namespace kausality-system, as ValidatingWebhookConfiguration kausality says.")
	limited(ctx, t)
	completes(ctx, t)
	traces(ctx, t)
	exports(ctx, t)
	asks(ctx, t)

	// 2. The function is not the last step.
	swapped(ctx, t, c)

	// 3. A policy is not in force.
	unserved(ctx, t, c)

	// 4. A provider is an old one, and another one is away while its gate is open.
	ungated(ctx, t)
	overdue(ctx, t)

	// 5. The API server does not get to one of the webhooks.
	unreached(ctx, t, c)

	// 6. The manager is away, and what it keeps is taken away as well.
	lost := away(ctx, t, c)

	// 7. With its return all is well again.
	back(ctx, t, lost)
}

// unserved makes a policy about a kind that is not served.
func unserved(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()

	lost := object("kausality.io/v1alpha1", "AllowancePolicy", "lost")
	lost.Object["spec"] = map[string]any{
		"match": map[string]any{"kind": "Lost", "apiGroup": "nowhere.example.org", "fields": []any{"spec"}},
		"allow": []any{map[string]any{"kind": "Object", "mutations": []any{"spec"}}},
	}

	if err := c.Create(ctx, lost); err != nil {
		t.Fatal(err)
	}

	if f := diagnosed(ctx, t, "policies")[0]; f.Object != "AllowancePolicy lost" || !strings.Contains(f.What, "Lost") {
		t.Errorf("policy: %+v", f)
	}

	if err := c.Delete(ctx, lost); err != nil {
		t.Fatal(err)
	}

	diagnosed(ctx, t)
}

// swapped puts another step after the function's.
func swapped(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()

	composition := object("apiextensions.crossplane.io/v1", "Composition", "xdatabases.example.org")

	swap := func() {
		patch := `[{"op": "move", "from": "/spec/pipeline/1", "path": "/spec/pipeline/2"}]`
		if err := c.Patch(ctx, composition, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}

	swap()

	if f := diagnosed(ctx, t, "compositions")[0]; f.Object != "Composition xdatabases.example.org" || !strings.Contains(f.Remedy, "function-kausality") {
		t.Errorf("composition: %+v", f)
	}

	swap()
	diagnosed(ctx, t)
}

// limited runs the doctor as somebody who may read little: it says so.
func limited(ctx context.Context, t *testing.T) {
	t.Helper()

	code, all, err := doctor(ctx, t, "--as=nobody@example.com", "--as-group=system:authenticated")
	if err != nil {
		t.Fatal(err)
	}

	unread := 0

	for _, f := range all {
		if f.Severity == "error" {
			t.Errorf("as nobody: %+v", f)
		}

		if strings.HasPrefix(f.What, "cannot ") {
			unread++
		}
	}

	if code != 0 || unread == 0 {
		t.Errorf("as nobody: exit code %d, %d unread: %+v", code, unread, all)
	}
}

// completes has kubectl complete the plugin's arguments.
func completes(ctx context.Context, t *testing.T) {
	t.Helper()

	for text, want := range map[string]string{
		"databaseclaims.e":                  "databaseclaims.example.org/\n",
		"databaseclaims.example.org/my-":    "databaseclaims.example.org/my-database\n",
		"databaseclaims.example.org/other-": ":4\n",
	} {
		if r := kubectl(ctx, t, "", "__complete", "kausality", "trace", text); !strings.HasPrefix(r.Stdout, want) {
			t.Errorf("complete %q: %+v", text, r)
		}
	}

	if r := kubectl(ctx, t, "", "__complete", "kausality", "trace", "--namespace", "kausality-"); !strings.HasPrefix(r.Stdout, "kausality-system\n") {
		t.Errorf("complete --namespace: %+v", r)
	}
}

// traces prints for programs, and ends as the help says.
func traces(ctx context.Context, t *testing.T) {
	t.Helper()

	r := kubectl(ctx, t, "hans", "kausality", "trace", "databaseclaim/my-database", "-n", "default", "-o", "yaml")
	for _, want := range []string{"apiVersion: cli.kausality.io/v1alpha1", "kind: Trace", "initiator: hans@example.com", "kind: DatabaseClaim"} {
		if r.Code != 0 || !strings.Contains(r.Stdout, want) {
			t.Errorf("trace -o yaml: no %q in %+v", want, r)
		}
	}

	if r := kubectl(ctx, t, "", "kausality", "trace", "databaseclaim/none"); r.Code != 1 || !strings.Contains(r.Stderr, "not found") {
		t.Errorf("trace of nothing: %+v", r)
	}

	if r := kubectl(ctx, t, "", "kausality", "trace", "databaseclaim"); r.Code != 2 {
		t.Errorf("trace without a name: %+v", r)
	}

	r = kubectl(ctx, t, "", "kausality", "version")
	for _, want := range []string{
		"function-kausality local (Function function-kausality,", "kausality-manager dev (ValidatingWebhookConfiguration kausality)\n",
	} {
		if r.Code != 0 || !strings.Contains(r.Stdout, want) || strings.Contains(r.Stdout, "unknown") {
			t.Errorf("version: no %q in %+v", want, r)
		}
	}
}
