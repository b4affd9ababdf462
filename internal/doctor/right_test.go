// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
