// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kausality-io/kausality-crossplane/engine/right"
)

func TestNeedsAreThoseOfWhatIsGoverned(t *testing.T) {
	s := healthy(t)
	s.Served = []right.Kind{
		{Group: "example.org", Kind: "Database", Resource: "databases", Crossplane: true},
		{Group: "rds.example.org", Kind: "Instance", Resource: "instances", Crossplane: true},
		{Group: "example.org", Kind: "Claim", Resource: "claims", Crossplane: true},
		{Group: "net.example.org", Kind: "Network", Resource: "networks", Crossplane: true},
		{Group: "other.example.org", Kind: "Bucket", Resource: "buckets", Crossplane: true},
		{Group: "apps", Kind: "Deployment", Resource: "deployments"},
		{Group: "batch", Kind: "Job", Resource: "jobs"},
		{Kind: "Secret", Resource: "secrets"},
	}
	s.Composites = read(t, `
apiVersion: example.org/v1
kind: Database
metadata: {name: mine}
spec:
  claimRef: {apiVersion: example.org/v1, kind: Claim, namespace: a, name: mine}
  resourceRefs: [{apiVersion: net.example.org/v1, kind: Network, name: net}, {apiVersion: v1, kind: Secret, name: s}]`).Items
	s.Lists[Enforcements] = read(t, `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: e}
spec: {match: {resourceRules: [{apiGroups: [apps], resources: ["*"]}]}}`)

	names := func(list []right.Need) (out []string) {
		for _, n := range list {
			out = append(out, n.String())
		}

		return out
	}

	want := []string{
		"deployments.apps", "claims.example.org", "databases.example.org", "networks.net.example.org", "instances.rds.example.org",
	}
	if diff := cmp.Diff(want, names(Needs(s, false))); diff != "" {
		t.Errorf("Needs: -want, +got:\n%s", diff)
	}

	want = []string{
		"deployments.apps", "claims.example.org", "databases.example.org", "networks.net.example.org", "buckets.other.example.org",
		"instances.rds.example.org",
	}
	if diff := cmp.Diff(want, names(Needs(s, true))); diff != "" {
		t.Errorf("Needs of the platform: -want, +got:\n%s", diff)
	}
}

func TestEachRightThatIsMissingIsFound(t *testing.T) {
	s := healthy(t)
	s.Served = []right.Kind{{Group: "rds.example.org", Kind: "Instance", Resource: "instances", Crossplane: true}}
	s.MissingRights = right.Missing(Needs(s, false), func(right.Right) bool { return false })

	var found []Finding

	for _, f := range Diagnose(s) {
		if f.Check == "rights" {
			found = append(found, f)
		}
	}

	if len(found) != 1 || found[0].Severity != Error || found[0].Object != "ServiceAccount kausality-system/kausality-manager" ||
		found[0].What != "the manager may not get, list, patch and watch instances.rds.example.org" || !strings.Contains(found[0].Remedy, right.Remedy) {
		t.Errorf("Diagnose: %+v", found)
	}

	s.RightsProblem = errors.New("subjectaccessreviews is forbidden")

	for _, f := range Diagnose(s) {
		if f.Check == "rights" && (f.Severity != Warning || !strings.Contains(f.What, s.RightsProblem.Error())) {
			t.Errorf("Diagnose: %+v", f)
		}
	}
}

func TestAPolicyWithoutRightsReportsWhatGivesThem(t *testing.T) {
	s := healthy(t)
	set(t, s, AllowancePolicies, "databases", []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "RightsMissing", "message": "it may not",
	}}, "status", "conditions")

	for _, f := range Diagnose(s) {
		if f.Check == "policies" && f.Remedy != right.Remedy {
			t.Errorf("Diagnose: %+v", f)
		}
	}
}

func TestParametersAreReadByRolesOfTheirOwn(t *testing.T) {
	policies := func(texts ...string) List {
		docs := make([]string, len(texts))
		for i, text := range texts {
			docs[i] = "{apiVersion: kausality.io/v1alpha1, kind: AllowancePolicy, " + text + "}\n"
		}

		return read(t, strings.Join(docs, "---\n"))
	}
	of := func(apiVersion, kind, status string) string {
		return "metadata: {name: " + strings.ToLower(kind) + ", generation: 2}, spec: {paramKind: {apiVersion: " + apiVersion + ", kind: " + kind + "}}, " +
			"status: {conditions: [{type: ParametersReadable, " + status + "}]}"
	}

	const (
		readable   = `status: "True", observedGeneration: 2`
		unreadable = `status: "False", observedGeneration: 2`
		readBefore = `status: "True", observedGeneration: 1`
	)

	cases := map[string]struct {
		reason string
		list   List
		all    bool
		want   []string
	}{
		"Unreadable": {"Of what cannot be read.", policies(of("limits.example.org/v1", "Limit", unreadable)), false, []string{"limits.limits.example.org"}},
		"Readable":   {"What can be is left out.", policies(of("limits.example.org/v1", "Limit", readable)), false, nil},
		"All":        {"But where all are asked for.", policies(of("limits.example.org/v1", "Limit", readable)), true, []string{"limits.limits.example.org"}},
		"Before":     {"What was known of another generation is not known of this one.", policies(of("limits.example.org/v1", "Limit", readBefore)), false, []string{"limits.limits.example.org"}},
		"Unsaid":     {"Nor is what nobody has said.", policies("metadata: {name: a}, spec: {paramKind: {apiVersion: v1, kind: ConfigMap}}"), false, []string{"configmaps"}},
		"Without":    {"Most policies have no parameters.", policies("metadata: {name: a}, spec: {match: {kind: Limit}}"), true, nil},
		"Unserved":   {"What is not served has no role.", policies(of("limits.example.org/v1", "Other", unreadable)), true, nil},
		"Unwatched":  {"Nor what no role lets anybody watch.", policies(of("metrics.k8s.io/v1beta1", "PodMetrics", unreadable)), true, nil},
		"Broken":     {"One that cannot be read is another check's.", policies("metadata: {name: a}, spec: {paramKind: none}"), true, nil},
		"Several": {
			"Each once, by name.", policies(
				of("limits.example.org/v1", "Limit", unreadable), of("v1", "ConfigMap", unreadable), of("limits.example.org/v1", "Limit", readBefore),
			), false, []string{"configmaps", "limits.limits.example.org"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &State{
				Lists: map[Source]List{AllowancePolicies: tc.list},
				// What nobody can change may be read all the same, and the other way round.
				Served:   []right.Kind{{Group: "metrics.k8s.io", Kind: "PodMetrics", Resource: "pods"}},
				Readable: []right.Kind{{Kind: "ConfigMap", Resource: "configmaps"}, {Group: "limits.example.org", Kind: "Limit", Resource: "limits"}},
			}

			found := Parameters(s, tc.all)
			got := make([]string, len(found))

			for i, gr := range found {
				got[i] = gr.String()
			}

			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
