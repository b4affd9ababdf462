// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// create makes an object and removes it when the test ends.
func create(ctx context.Context, t *testing.T, c client.Client, u *unstructured.Unstructured) error {
	t.Helper()

	err := c.Create(ctx, u)
	if err == nil {
		t.Cleanup(func() {
			err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(ctx), u))
			if err != nil {
				t.Errorf("cannot delete %s %q: %v", u.GetKind(), u.GetName(), err)
			}
		})
	}

	return err
}

func TestInputThatCannotBeUsedIsRefusedWithTheFieldsPath(t *testing.T) {
	c := world.Connect(t, running.Config())

	cases := map[string]struct {
		reason string
		object string
		want   []string
	}{
		"CELThatDoesNotCompile": {
			reason: "An expression that does not compile is found out when it is written, not when it is needed.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: bad-cel}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size], cel: ["true", "object.spec."]}
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []string{"spec.match.cel[1]", "object.spec."},
		},
		"CELWithAnUnknownVariable": {
			reason: "A name that is no variable is an error and not null.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: bad-variable}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size], cel: ["objekt.spec.size == 'large'"]}
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []string{"spec.match.cel[0]", "objekt"},
		},
		"FieldPathSyntax": {
			reason: "A field that is no path would silently never match.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: bad-path}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size, "spec.items[0"]}
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []string{"spec.match.fields[1]", "spec.items[0"},
		},
		"MutationPathSyntax": {
			reason: "A mutation that is no path would silently never be allowed.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: bad-mutation}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size]}
  allow: [{kind: XDatabase, mutations: ["spec..size"]}]`,
			want: []string{"spec.allow[0].mutations[0]", "spec..size"},
		},
		"ChildWithoutKind": {
			reason: "A permission about children has to say which.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: no-kind}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size]}
  allow: [{mutations: [spec.size]}]`,
			want: []string{"spec.allow[0]", "kind is required"},
		},
		"ServiceAccountWithoutNamespace": {
			reason: "A service account is only known with its namespace.",
			object: `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: no-namespace}
spec:
  match: {kind: DatabaseClaim, fields: [spec.size]}
  subjects: [{kind: ServiceAccount, name: crossplane}]
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []string{"spec.subjects[0]", "namespace is required"},
		},
		"WindowThatEndsBeforeItBegins": {
			reason: "Such a window would never be open.",
			object: `
kind: UpgradeAllowance
apiVersion: kausality.io/v1alpha1
metadata: {name: backwards}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  validFrom: "2024-01-06T18:00:00Z"
  validUntil: "2024-01-06T15:00:00Z"
  allow: [{kind: XDatabase, mutations: [spec.size]}]`,
			want: []string{"spec.validUntil", "must be after validFrom"},
		},
		"ExceptionPathSyntax": {
			reason: "An exception that is no path would silently not apply.",
			object: `
kind: Enforcement
apiVersion: kausality.io/v1alpha1
metadata: {name: bad-exception}
spec:
  match: {resourceRules: [{apiGroups: [example.org], resources: ["*"]}]}
  validationActions: [Deny]
  exceptions: [{name: x, subjects: [{kind: Group, name: dba}], mutations: ["spec["], until: "2030-01-01T00:00:00Z", reason: INFRA-7}]`,
			want: []string{"spec.exceptions[0].mutations[0]"},
		},
		"DenyWithWarn": {
			reason: "What is refused needs no warning.",
			object: `
kind: Enforcement
apiVersion: kausality.io/v1alpha1
metadata: {name: deny-warn}
spec:
  match: {resourceRules: [{apiGroups: [example.org], resources: ["*"]}]}
  validationActions: [Deny, Warn]`,
			want: []string{"spec.validationActions", "only Warn and Audit may be combined"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(t.Context(), t, c, world.Parse(t, []byte(tc.object))[0])
			if !apierrors.IsInvalid(err) {
				t.Fatalf("%s\nCreate: got %v, want reason Invalid", tc.reason, err)
			}

			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s\nCreate: %q does not mention %q", tc.reason, err, w)
				}
			}
		})
	}
}

func TestEveryDocumentOfTheReferenceApplies(t *testing.T) {
	c := world.Connect(t, running.Config())

	raw, err := os.ReadFile("testdata/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}

	all := world.Parse(t, raw)
	if len(all) != 5 {
		t.Fatalf("the reference has %d documents, want 5", len(all))
	}

	for _, u := range all {
		// The scenario has policies of the same names in place.
		u.SetName("reference-" + u.GetName())

		if err := create(t.Context(), t, c, u); err != nil {
			t.Errorf("%s %q: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

func TestTheExamplesAboutOurKindsApply(t *testing.T) {
	c := world.Connect(t, running.Config())

	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}

	applied := 0

	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "invalid" {
			continue // Those are to be refused.
		}

		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, u := range world.Parse(t, raw) {
			if u.GroupVersionKind().Group != v1alpha1.Group {
				continue // Its kind is made by another document.
			}

			applied++

			u.SetName("example-" + u.GetName())

			if err := c.Create(t.Context(), u, client.DryRunAll); err != nil {
				t.Errorf("%s: %s %q: %v", file, u.GetKind(), u.GetName(), err)
			}
		}
	}

	if applied < 10 {
		t.Errorf("%d documents, want at least 10", applied)
	}
}
