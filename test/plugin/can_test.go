// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package plugin_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asks finds out what may be changed, for oneself and for others, and has it explained.
func asks(ctx context.Context, t *testing.T) {
	t.Helper()

	const claim = "databaseclaim/my-database"

	manifest := filepath.Join(t.TempDir(), "claim.yaml")
	if err := os.WriteFile(manifest, []byte("apiVersion: example.org/v1alpha1\nkind: DatabaseClaim\n"+
		"metadata: {name: my-database, namespace: default, annotations: {jira: null}}\nspec: {size: large}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		user string
		args []string
		code int
		want []string
	}{
		"WhoMay": {
			user: "hans", args: []string{"can", claim, "spec.size=large"},
			want: []string{"changed by hans@example.com", "spec.size: allowed by database-claim-to-xr (rule Initiate)", "Then may follow", "XDatabase spec.size"},
		},
		"WhoMayNot": {
			user: "anna", args: []string{"can", claim, "spec.size=large"}, code: 3,
			want: []string{`policy "database-claim-to-xr": only Group platform-team may, not anna@example.com`},
		},
		"ForAnother": {
			args: []string{"can", claim, "spec.size=large", "--as", "anna@example.com", "--as-group", "app-team"}, code: 3,
			want: []string{"changed by anna@example.com", "only Group platform-team may"},
		},
		"ForAnotherWhoMay": {
			args: []string{"can", claim, "spec.size", "--as=other@example.com", "--as-group=platform-team", "-o", "json"},
			want: []string{`"kind": "Verdict"`, `"allowed": true`, `"policy": "database-claim-to-xr"`},
		},
		"WithoutTheTicket": {
			user: "hans", args: []string{"can", "-f", manifest}, code: 3,
			want: []string{`CEL "has(object.metadata.annotations['jira'])" is false`},
		},
		"Composed": {
			args: []string{"can", "xdatabase/" + composite(ctx, t), "spec.size=huge", "--as", "system:serviceaccount:crossplane-system:crossplane"},
			code: 3, want: []string{"allows it"},
		},
		"Explained": {
			user: "hans", args: []string{"explain", claim, "spec.size"},
			want: []string{
				"It has no parent: it is a root.", "spec.size: allowed by database-claim-to-xr", "may initiate: Group platform-team (this user)",
				"spec.match.cel[0]: has(object.metadata.annotations['jira']): holds",
			},
		},
		"ExplainedAsYAML": {
			args: []string{"explain", claim, "-o", "yaml"}, want: []string{"kind: Explanation", "name: database-claim-to-xr", "enforcementMode: Enforce"},
		},
		"NoField":    {args: []string{"can", claim}, code: 2},
		"NoSuchPath": {args: []string{"can", claim, "spec.rules[*]"}, code: 2},
		"NoObject":   {args: []string{"can", "databaseclaim/none", "spec.size"}, code: 1, want: nil},
	} {
		r := kubectl(ctx, t, tc.user, append([]string{"kausality"}, append(tc.args, "-n", "default")...)...)

		text := strings.Join(strings.Fields(r.Stdout), " ")
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", name, want, r.Stdout)
			}
		}

		if r.Code != tc.code || strings.Contains(r.Stdout, "Not known") {
			t.Errorf("%s: exit code %d, want %d: %s%s", name, r.Code, tc.code, r.Stdout, r.Stderr)
		}
	}
}

// composite is the name of the XR of the Claim.
func composite(ctx context.Context, t *testing.T) string {
	t.Helper()

	r := kubectl(ctx, t, "", "get", "databaseclaim", "my-database", "-n", "default", "-o", "jsonpath={.spec.resourceRef.name}")
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}

	return r.Stdout
}
