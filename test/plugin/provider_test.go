// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
)

// succeeds has kubectl succeed in the end.
func succeeds(ctx context.Context, t *testing.T, user string, args ...string) {
	t.Helper()

	if err := scenario.Eventually(ctx, strings.Join(args, " "), func(ctx context.Context) error {
		return kubectl(ctx, t, user, args...).Err()
	}); err != nil {
		t.Fatal(err)
	}
}

// ungated composes what a provider manages that supports no management policies.
func ungated(ctx context.Context, t *testing.T) {
	t.Helper()

	succeeds(ctx, t, "", "apply", "-f", "../e2e/testdata/yards.yaml")
	succeeds(ctx, t, "", "wait", "--for=condition=Established", "--timeout="+patience.Limit.String(), "crd/yards.shop.example.org")
	succeeds(ctx, t, "hans", "apply", "-f", "testdata/yard.yaml")

	found(ctx, t, "warning", "policies", "the provider's actions are not gated: the provider of NopResource.nop.crossplane.io does not support management policies")
	diagnosed(ctx, t)
}

// overdue keeps a gate open for longer than its policy allows: the provider is
// away that it is open for.
func overdue(ctx context.Context, t *testing.T) {
	t.Helper()

	provider := running.Process("provider-kubernetes")
	if err := provider.Kill(); err != nil {
		t.Fatal(err)
	}

	succeeds(ctx, t, "hans", "patch", "databaseclaim/my-database", "-n", "default", "--type=merge", "-p", `{"spec": {"size": "large"}}`)
	succeeds(ctx, t, "", "wait", "--for=jsonpath={.spec.forProvider.manifest.data.size}=large", "--timeout="+patience.Limit.String(), "objects.kubernetes.crossplane.io", "--all")
	diagnosed(ctx, t)

	const policy = "allowancepolicy/xdatabase-to-object"

	succeeds(ctx, t, "", "patch", policy, "--type=merge", "-p", `{"spec": {"gate": {"maxOpen": "1s"}}}`)

	if f := diagnosed(ctx, t, "gates")[0]; f.Object != "Object "+managed(ctx, t) || !strings.Contains(f.What, "its gate is open since") {
		t.Errorf("gate: %+v", f)
	}

	succeeds(ctx, t, "", "patch", policy, "--type=merge", "-p", `{"spec": {"gate": null}}`)
	outdated(ctx, t)

	if err := provider.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	found(ctx, t, "ok", "providers", "Providers are healthy, and say which generation they observed.")
	diagnosed(ctx, t)
}

// outdated leaves what a provider of before crossplane-runtime 1.20 does: conditions
// without the generation they are about, and a CRD from before management policies.
func outdated(ctx context.Context, t *testing.T) {
	t.Helper()

	// With a message: since crossplane-runtime 2.4 a condition that differs in nothing but a missing observedGeneration is
	// not written again. Source: github.com/crossplane/crossplane/apis/v2 v2.4.0, core/v2/condition.go, Equal.
	succeeds(ctx, t, "", "patch", "objects.kubernetes.crossplane.io/"+managed(ctx, t), "--subresource=status", "--type=merge", "-p",
		`{"status": {"conditions": [{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "message": "of an old provider", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

	if f := found(ctx, t, "warning", "providers", "its provider sets no observedGeneration on condition Synced"); f.Object != "Object.kubernetes.crossplane.io" {
		t.Errorf("conditions: %+v", f)
	}

	succeeds(ctx, t, "", "apply", "-f", "testdata/oldkind.yaml")

	if f := found(ctx, t, "warning", "kinds", "the kind has no spec.managementPolicies"); f.Object != "Bucket.old.example.org" {
		t.Errorf("kind: %+v", f)
	}

	succeeds(ctx, t, "", "delete", "-f", "testdata/oldkind.yaml")
	diagnosed(ctx, t)
}

// managed is the name of the database's managed resource.
func managed(ctx context.Context, t *testing.T) string {
	t.Helper()

	r := kubectl(ctx, t, "", "get", "objects.kubernetes.crossplane.io", "-o", "jsonpath={.items[*].metadata.name}")
	if r.Code != 0 || r.Stdout == "" || strings.Contains(r.Stdout, " ") {
		t.Fatalf("managed resources: %+v", r)
	}

	return r.Stdout
}
