// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/right"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestAMissingRightIsReportedUntilItIsThere(t *testing.T) {
	have := &fixture.Roles{Of: map[string]bool{}, Now: time.Unix(0, 0)}
	r := NewRights(have.Access())

	reg := prometheus.NewRegistry()
	if err := reg.Register(r); err != nil {
		t.Fatal(err)
	}

	served := fixture.ServedKinds()
	want := admission.Config{
		Policies: fixture.Documents[v1alpha1.AllowancePolicy](t, fixture.RolloutPolicy),
		Enforcements: fixture.Documents[v1alpha1.Enforcement](t,
			`{metadata: {name: e}, spec: {match: {resourceRules: [{apiGroups: [apps], resources: [deployments]}]}, validationActions: [Deny]}}`),
		Windows: fixture.Documents[v1alpha1.UpgradeAllowance](t,
			`{metadata: {name: w}, spec: {serviceAccount: "system:serviceaccount:a:b", allow: [{kind: Pod, mutations: [spec]}]}}`),
	}
	needs := right.OfPolicy(&want.Policies[0], kind.ForRights(served))

	steps := []struct {
		reason  string
		have    []string
		came    bool
		missing bool
		says    string
		counted []string
	}{
		{"Nothing may be done.", nil, false, true, "replicasets", []string{"missing_rights{apps,deployments} 1", "missing_rights{apps,replicasets} 1", "missing_rights{,pods} 1"}},
		{"One is there by now.", []string{"deployments", "pods"}, true, true, "replicasets", []string{"missing_rights{apps,replicasets} 1"}},
		{"Nothing has changed.", nil, false, true, "replicasets", []string{"missing_rights{apps,replicasets} 1"}},
		{"All are.", []string{"replicasets"}, true, false, "", nil},
	}

	for _, s := range steps {
		for _, name := range s.have {
			have.Of[name] = true
		}

		have.Soon()

		if came := r.Refresh(t.Context(), want, served, nil); came != s.came || r.Missing() != s.missing {
			t.Errorf("%s\ncame %v, missing %v", s.reason, came, r.Missing())
		}

		reason, message, missing := r.Condition(needs, "nothing works")
		if missing != (s.says != "") || missing && (reason != v1alpha1.ReasonRightsMissing || !strings.HasPrefix(message, "nothing works: ") || !strings.Contains(message, s.says)) {
			t.Errorf("%s\ncondition %s, %q, %v", s.reason, reason, message, missing)
		}

		got := fixture.Counted(t, reg)
		sortStrings := cmp.Transformer("sorted", func(in []string) map[string]int {
			out := map[string]int{}
			for _, text := range in {
				out[text]++
			}

			return out
		})

		if diff := cmp.Diff(s.counted, got, sortStrings); diff != "" {
			t.Errorf("%s\nmetrics, -want, +got:\n%s", s.reason, diff)
		}
	}

	if _, _, missing := (*Rights)(nil).Condition(needs, ""); missing {
		t.Error("who looks at no rights misses none")
	}
}
