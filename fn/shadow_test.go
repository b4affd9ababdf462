// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestTheFunctionCountsWhatInShadowModeMakesTheDifference by the policy, or by the condition
// of it that would refuse what is allowed, and logs it.
func TestTheFunctionCountsWhatInShadowModeMakesTheDifference(t *testing.T) {
	const (
		fields     = "fields: [spec.forProvider.engine]"
		crossplane = `  subjects: [{kind: User, name: "system:serviceaccount:crossplane-system:crossplane", mayInitiate: true}]`
		condition  = `fields: [spec.forProvider.engine], matchConditions: [{name: ticket, expression: "object.kind == ''", enforcementMode: Shadow}]`
	)

	about := strings.Replace(strings.ReplaceAll(toldPolicy, "XDatabase", "Object"), "fields: [spec.engine]", fields, 1) + crossplane

	for name, tc := range map[string]struct{ policy, want, logged string }{
		"Condition": {
			strings.Replace(about, fields, condition, 1), "composite_kind=XDatabase,condition=ticket,policy=app-engine,verdict=Unallowed 1",
			`"policy"="app-engine" "condition"="ticket"`,
		},
		"Policy": {
			about + "\n  enforcementMode: Shadow", "composite_kind=XDatabase,condition=,policy=app-engine,verdict=Allowed 1",
			`"policy"="app-engine" "condition"=""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, reg := listen(), prometheus.NewRegistry()
			if err := l.Register(reg); err != nil {
				t.Fatal(err)
			}

			heard := fmt.Sprint(l.hear(t, "a", "[]", "mysql", tc.policy))

			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}

			var got []string

			for _, f := range families {
				for _, m := range f.GetMetric() {
					var labels []string
					for _, l := range m.GetLabel() {
						labels = append(labels, l.GetName()+"="+l.GetValue())
					}

					if f.GetName() == "kausality_function_shadow_total" {
						got = append(got, fmt.Sprint(strings.Join(labels, ","), " ", m.GetCounter().GetValue()))
					}
				}
			}

			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			if !strings.Contains(heard, tc.logged) {
				t.Errorf("logged %q, want %q", heard, tc.logged)
			}
		})
	}
}
