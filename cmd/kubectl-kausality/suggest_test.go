// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/internal/doctor"
	"github.com/kausality-io/kausality-crossplane/internal/suggestion"
)

// suggesting runs the command on files of the examples.
func suggesting(t *testing.T, in string, args ...string) (out, warnings string, err error) {
	t.Helper()

	var stdout, stderr bytes.Buffer

	cmd := root()
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)

	err = run(t.Context(), cmd, append([]string{"kubectl-kausality", "suggest"}, args...))

	return stdout.String(), stderr.String(), err
}

const suggestExamples = "../../examples/"

func TestSuggestReadsFilesWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "nothing"))

	composition, err := os.ReadFile(suggestExamples + "namespaced-xr/composition.yaml")
	if err != nil {
		t.Fatal(err)
	}

	const subject, alone = "--subject=Group=platform-team", "there is no CompositeResourceDefinition"

	for name, tc := range map[string]struct {
		reason string
		in     string
		args   []string
		code   int
		// out and warnings are parts of what is printed, err the error.
		out, warnings, err string
	}{
		"Directory": {
			reason: "All manifests of a directory are read.", args: []string{"-f", suggestExamples + "namespaced-xr", subject},
			out: "name: caches.example.org-cache-memory\n",
		},
		"Nested": {
			reason: "The Composition that no other one composes for is meant.", args: []string{"-f", suggestExamples + "nested-xr", subject},
			out: "# AllowancePolicies suggested for Composition environments.example.org, to be reviewed.\n",
		},
		"Named": {
			reason: "Another one may be named.", args: []string{"networks.example.org", "-f", suggestExamples + "nested-xr", subject},
			out: "# AllowancePolicies suggested for Composition networks.example.org, to be reviewed.\n",
		},
		"Stdin": {
			reason: "What is incomplete is said, and has an exit code of its own.", in: string(composition), args: []string{"-f", "-", subject}, code: exitFinding,
			out: "name: caches.example.org-cache-memory\n", warnings: "Warning: Composition caches.example.org: " + alone, err: errIncomplete.Error(),
		},
		"NoSubject": {
			reason: "Who is to be let in is asked for.", args: []string{"-f", suggestExamples + "namespaced-xr"},
			out: `  - {kind: User, name: "REPLACE-ME: who may start this", mayInitiate: true} # <- replace`, warnings: "Warning: no --subject is given",
		},
		"Prefix": {
			reason: "Names may begin otherwise.", args: []string{"-f", suggestExamples + "namespaced-xr", subject, "--policy-prefix=shop."},
			out: "name: shop.caches.example.org-cache-memory\n",
		},
		"Subjects": {
			reason: "All kinds of subjects may be given.", args: []string{
				"-f", suggestExamples + "namespaced-xr", "--subject=User=hans", "--subject=ServiceAccount=ci/deployer", "--subject=Permission=size",
				"--subject=ServiceAccount=system:serviceaccount:ci:other",
				"--crossplane-service-account=system:serviceaccount:upbound-system:crossplane", "--external=none",
			},
			out: `  - {kind: User, name: hans, mayInitiate: true}
  - {kind: ServiceAccount, namespace: ci, name: deployer, mayInitiate: true}
  - {kind: Permission, name: size, mayInitiate: true}
  - {kind: ServiceAccount, namespace: ci, name: other, mayInitiate: true}
  - {kind: ServiceAccount, namespace: upbound-system, name: crossplane}
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.memory]}
`,
		},
		"JSONPath": {
			reason: "A template takes what a List has.", args: []string{"-f", suggestExamples + "namespaced-xr", subject, "-o", "jsonpath={.items[*].metadata.name}"},
			out: "caches.example.org-cache-create caches.example.org-cache-memory",
		},
		"NotASubject": {
			reason: "A subject has a kind.", args: []string{"-f", "x", "--subject=platform-team"}, code: exitUsage,
			err: `cannot read subject "platform-team": ` + errSubject.Error(),
		},
		"NoNamespace": {
			reason: "A service account has a namespace.", args: []string{"-f", "x", "--subject=ServiceAccount=crossplane"}, code: exitUsage,
			err: `cannot read subject "ServiceAccount=crossplane": ` + errSubject.Error(),
		},
		"CrossplanesUser": {
			reason: "Crossplane may work under another user than a service account.", args: []string{
				"-f", suggestExamples + "namespaced-xr", subject, "--crossplane-service-account=upbound:crossplane",
			},
			out: `  - {kind: User, name: "upbound:crossplane"}`,
		},
		"NotAUser": {
			reason: "NAMESPACE/NAME is no user name.", args: []string{"-f", "x", "--crossplane-service-account=upbound-system/crossplane"}, code: exitUsage,
			err: `cannot take "upbound-system/crossplane" as --crossplane-service-account: ` + errUser.Error(),
		},
		"HalfAUser": {
			reason: "The user name of a service account has a namespace.", args: []string{"-f", "x", "--crossplane-service-account=system:serviceaccount:crossplane"},
			code: exitUsage, err: `cannot take "system:serviceaccount:crossplane" as --crossplane-service-account: ` + errUser.Error(),
		},
		"NotAnAction": {
			reason: "What has external objects made anew is not suggested.", args: []string{"-f", "x", "--external=Delete"}, code: exitUsage,
			err: "cannot suggest --external=Delete: " + errExternal.Error(),
		},
		"NotAPrefix": {
			reason: "A prefix begins a name.", args: []string{"-f", "x", "--policy-prefix=Team_A"}, code: exitUsage,
			err: `cannot take "Team_A" as --policy-prefix: ` + errPrefix.Error(),
		},
		"NoFile": {reason: "A file that is not there is an error.", args: []string{"-f", "no-such-file"}, code: exitError, err: "cannot read file: open no-such-file: no such file or directory"},
		"NoComposition": {
			reason: "Files without a Composition are of no use.", args: []string{"-f", suggestExamples + "namespaced-xr/xrd.yaml"}, code: exitUsage,
			err: "name one Composition: the files have none",
		},
		"Other": {
			reason: "Nor are those without the one that is named.", args: []string{"other", "-f", suggestExamples + "nested-xr"}, code: exitUsage,
			err: "name one Composition: the files have environments.example.org, networks.example.org",
		},
		"Twice": {
			reason: "Two versions are not one.", args: []string{"-f", suggestExamples + "audit-to-deny"}, code: exitUsage,
			err: `name one Composition: the files have Composition "sites.example.org" twice`,
		},
		"Nothing": {reason: "Without files it has to be named.", code: exitUsage, err: "name one Composition, or give its file with -f"},
	} {
		t.Run(name, func(t *testing.T) {
			out, warnings, err := suggesting(t, tc.in, tc.args...)

			if code := exitCode(err); code != tc.code || err != nil && err.Error() != tc.err {
				t.Errorf("%s\nexit code %d, %v; want %d, %s", tc.reason, code, err, tc.code, tc.err)
			}

			if !strings.Contains(out, tc.out) {
				t.Errorf("%s\nit does not print %q, but\n%s", tc.reason, tc.out, out)
			}

			if !strings.Contains(warnings, tc.warnings) || tc.warnings == "" && warnings != "" {
				t.Errorf("%s\nit warns %q, want %q", tc.reason, warnings, tc.warnings)
			}
		})
	}
}

func TestSuggestPrintsAListThatIsApplied(t *testing.T) {
	out, _, err := suggesting(t, "", "-f", suggestExamples+"namespaced-xr", "--subject=Group=platform-team", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}

	var list v1alpha1.AllowancePolicyList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}

	fields := make([]string, 0, len(list.Items))
	for _, p := range list.Items {
		fields = append(fields, p.Kind+" "+p.Spec.Match.Kind+" "+strings.Join(p.Spec.Match.Fields, ","))
	}

	if diff := cmp.Diff([]string{"AllowancePolicy Cache create", "AllowancePolicy Cache spec.memory"}, fields); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	if strings.Contains(out, "status") || strings.Contains(out, "creationTimestamp") {
		t.Errorf("it prints what only the API server knows:\n%s", out)
	}
}

// clusterOf is a cluster with the objects of files.
type clusterOf struct {
	objects []*unstructured.Unstructured
	// refused is the resource that may not be read.
	refused string
}

func (c clusterOf) Get(_ context.Context, kind, name string) (*unstructured.Unstructured, error) {
	plural, _, _ := strings.Cut(kind, ".")
	if c.refused == plural {
		return nil, errors.New("cannot get " + plural + ": forbidden")
	}

	for _, u := range c.objects {
		if strings.ToLower(u.GetKind())+"s" == plural && u.GetName() == name {
			return u, nil
		}
	}

	return nil, apierrors.NewNotFound(schema.ParseGroupResource(kind), name)
}

func (c clusterOf) list(_ context.Context, src doctor.Source, _ string) doctor.List {
	if c.refused == src.Resource {
		return doctor.List{Problem: "forbidden"}
	}

	var out doctor.List

	for _, u := range c.objects {
		if strings.ToLower(u.GetKind())+"s" == src.Resource {
			out.Items = append(out.Items, u)
		}
	}

	return out
}

func (c clusterOf) resourceOf(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if gvk.Group == "kubernetes.m.crossplane.io" {
		return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
	}

	return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), nil
}

func TestSuggestReadsTheClusterAsItsUser(t *testing.T) {
	t.Parallel()

	files, err := readFiles([]string{suggestExamples + "nested-xr"}, nil)
	if err != nil {
		t.Fatal(err)
	}

	const xr = `{apiVersion: example.org/v1, kind: Environment, metadata: {name: one, namespace: shop, generation: 2, annotations:
 {kausality.io/held: "[{field: spec.zone, cause: {type: Edit, user: anna, since: '2026-01-01T00:00:00Z'}, stored: {}}]"}}, spec: {crossplane: {compositionRef: {name: environments.example.org}, resourceRefs:
 [{apiVersion: example.org/v1, kind: Network, name: n}]}}, status: {conditions: [{type: Kausality, status: "False", reason: Held,
 message: "generation 2: settled; 1 held: Network n: spec.zone stays a (asked: b): no policy"}, {type: KausalityState, status: "False", reason: Held,
 message: '{"v":1,"progress":{"phase":"Settled"},"changes":[{"ref":{"apiVersion":"example.org/v1","kind":"Network","name":"n"},"field":"spec.zone","from":"a","to":"b"}]}'}]}}`

	files = append(files, parse(t, xr))

	const both = "environments.example.org-environment-region,networks.example.org-network-region"

	for name, tc := range map[string]struct {
		reason, refused string
		held            bool
		policies        string
		problems        []string
	}{
		"All": {reason: "All there is to know is read.", policies: both},
		"NoDefinitions": {
			reason: "What may not be read is said.", refused: "compositeresourcedefinitions", policies: both,
			problems: []string{"cannot list objects of kind CompositeResourceDefinition: forbidden"},
		},
		"NoKinds": {
			reason: "So it is of kinds.", refused: "customresourcedefinitions", policies: both,
			problems: []string{"cannot get customresourcedefinitions: forbidden"},
		},
		"Held": {
			reason: "XRs are read where they are asked for.", held: true,
			policies: "environments.example.org-environment-region,environments.example.org-environment-zone,networks.example.org-network-region",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := materialReader{suggestOptions: suggestOptions{held: tc.held}}

			m, err := r.fromCluster(t.Context(), clusterOf{files, tc.refused}, "environments.example.org")
			if err != nil {
				t.Fatal(err)
			}

			s, err := suggestion.Suggest(m, suggestion.Options{External: true, Silent: []string{functionKausality}})
			if err != nil {
				t.Fatal(err)
			}

			names := make([]string, 0, len(s.Policies))
			for _, p := range s.Policies {
				names = append(names, p.Policy.Name)
			}

			if diff := cmp.Diff(tc.policies, strings.Join(names, ",")); diff != "" {
				t.Errorf("%s\npolicies: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.problems, r.problems); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	r := materialReader{}
	if _, err := r.fromCluster(t.Context(), clusterOf{objects: files}, "none"); !apierrors.IsNotFound(err) {
		t.Errorf("a Composition that is not there: %v", err)
	}
}
