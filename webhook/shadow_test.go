// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// readingParent is a policy about ReplicaSets that lets their controller do what it wants
// below a Deployment with a template, which the informers do not know.
const readingParent = `{metadata: {name: reading}, spec: {enforcementMode: MODE, match: {kind: ReplicaSet, fields: [spec], cel: ["has(parent.spec.template)"]},
	subjects: [{kind: User, name: "` + controller + `", mayInitiate: true}], allow: [{kind: Pod, mutations: [create]}]}}`

// TestWhatIsInShadowModeKeepsNothingFromBeingDecided has a policy that reads the parent,
// which the API server does not give.
func TestWhatIsInShadowModeKeepsNothingFromBeingDecided(t *testing.T) {
	for mode, want := range map[v1alpha1.EnforcementMode]bool{v1alpha1.EnforcementModeEnforce: false, v1alpha1.EnforcementModeShadow: true} {
		c := denying(t)
		c.broken = errBoom
		c.informed = []*unstructured.Unstructured{
			manifest(t, deployment), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"),
		}

		p := v1alpha1.AllowancePolicy{}
		if err := yaml.UnmarshalStrict([]byte(strings.Replace(readingParent, "MODE", string(mode), 1)), &p); err != nil {
			t.Fatal(err)
		}

		c.policies = append(c.policies, p)

		if rsp := through(t, c, scaled(t, replicaSet)); rsp.Allowed != want {
			t.Errorf("%s: allowed %t: %+v", mode, rsp.Allowed, rsp.Result)
		}

		if read := c.reads > 0; read == want {
			t.Errorf("%s: %d reads", mode, c.reads)
		}
	}
}

// TestWhatIsInShadowModeIsReportedByTheWholeParent where it would allow what nothing else does.
func TestWhatIsInShadowModeIsReportedByTheWholeParent(t *testing.T) {
	spent := strings.Replace(strings.Replace(deployment, "kausality.io/allowances", "other", 1), "{replicas: 2}", "{replicas: 2, template: {spec: {}}}", 1)

	c := denying(t)
	c.live = []*unstructured.Unstructured{manifest(t, spent)}
	c.informed = []*unstructured.Unstructured{manifest(t, spent), manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")}

	p := v1alpha1.AllowancePolicy{}
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(readingParent, "MODE", "Shadow", 1)), &p); err != nil {
		t.Fatal(err)
	}

	c.policies = append(c.policies, p)

	rsp := post(t, serve(t, &webhook.Mutator{Judge: c.judge(t, time.Now())}), scaled(t, replicaSet))
	if got, want := rsp.AuditAnnotations["shadow"], `spec.replicas would be allowed by AllowancePolicy "reading"`; got != want {
		t.Errorf("shadow: %q, want %q", got, want)
	}
}

// TestWhatInShadowModeMakesTheDifferenceIsCounted by the policy, or by the condition of it
// that would refuse what is allowed.
func TestWhatInShadowModeMakesTheDifferenceIsCounted(t *testing.T) {
	condition := v1alpha1.PolicyCondition{
		MatchCondition:  v1alpha1.MatchCondition{Name: "ticket", Expression: "object.spec.zone == 'c'"},
		EnforcementMode: v1alpha1.EnforcementModeShadow,
	}

	for name, tc := range map[string]struct {
		shadow func(*v1alpha1.AllowancePolicySpec)
		want   string
	}{
		"Condition": {
			func(s *v1alpha1.AllowancePolicySpec) {
				s.Match.MatchConditions = append(s.Match.MatchConditions, condition)
			},
			"condition=ticket,policy=size,verdict=Unallowed 2",
		},
		"Policy": {
			func(s *v1alpha1.AllowancePolicySpec) { s.EnforcementMode = v1alpha1.EnforcementModeShadow },
			"condition=,policy=size,verdict=Allowed 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := stores(t, "Deny")
			tc.shadow(&c.policies[0].Spec)

			judge, reg := c.judge(t, time.Now()), prometheus.NewRegistry()

			counts, err := webhook.NewMetrics(reg, never{})
			if err != nil {
				t.Fatal(err)
			}

			judge.Metrics = counts

			for range 2 {
				handled(t, &webhook.Mutator{Judge: judge}, larger(t, "hans"))
			}

			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}

			var got []string

			for _, f := range families {
				if f.GetName() != "kausality_webhook_shadow_total" {
					continue
				}

				for _, m := range f.GetMetric() {
					var labels []string

					for _, l := range m.GetLabel() {
						if slices.Contains([]string{"condition", "policy", "verdict"}, l.GetName()) {
							labels = append(labels, l.GetName()+"="+l.GetValue())
						}
					}

					got = append(got, fmt.Sprint(strings.Join(labels, ","), " ", m.GetCounter().GetValue()))
				}
			}

			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
