// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// alerts are the rules, by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()

	groups, errs := rulefmt.ParseFile("../rules.yaml", false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}

	out := map[string]rulefmt.Rule{}

	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if _, ok := out[r.Alert]; ok || r.Alert == "" {
				t.Errorf("rule %q is there twice, or is no alert", r.Alert)
			}

			out[r.Alert] = r
		}
	}

	return out
}

// TestEveryAlertSaysWhatToDo and is about what is exported.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	series := exported(t)

	raw, err := os.ReadFile("../../../docs/reference/alerts.md")
	if err != nil {
		t.Fatal(err)
	}

	for name, r := range alerts(t) {
		known(t, r.Expr, series)

		for _, key := range []string{"summary", "description", "remedy", "runbook_url"} {
			if r.Annotations[key] == "" {
				t.Errorf("%s has no annotation %s", name, key)
			}
		}

		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/reference/alerts.md#"+strings.ToLower(name)) {
			t.Errorf("%s: %s is not its anchor", name, r.Annotations["runbook_url"])
		}

		if !strings.Contains(string(raw), "\n## "+name+"\n") {
			t.Errorf("docs/reference/alerts.md has no anchor for %s", name)
		}

		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q", name, r.Labels["severity"])
		}

		for _, label := range used(r.Annotations["summary"] + r.Annotations["description"]) {
			if label != "$value" && !keeps(r.Expr, label) {
				t.Errorf("%s does not keep label %s", name, label)
			}
		}
	}
}

// TestAlertsFireWhenTheyShould has each rule see series in which it must fire,
// and others in which it must not.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	const gauge = `{group="rds.example.org", kind="Instance"} `

	cases := map[string]struct{ fires, rests string }{
		"KausalityManagerAbsent": {`up{job="kausality-manager"} 0x60`, `up{job="kausality-manager"} 1x60`},
		// The clock starts at 0.
		"KausalityWebhookCertificateEnds": {
			"kausality_webhook_certificate_expiry_timestamp_seconds 80000x60", "kausality_webhook_certificate_expiry_timestamp_seconds 800000x60",
		},
		"KausalityWebhookCacheStale": {"kausality_webhook_cache_age_seconds -1x60", "kausality_webhook_cache_age_seconds 9x60"},
		"KausalityWebhookSlow": {
			`kausality_webhook_request_seconds_bucket{le="1"} 0x60
			kausality_webhook_request_seconds_bucket{le="2"} 0+10x60
			kausality_webhook_request_seconds_bucket{le="+Inf"} 0+10x60`,
			`kausality_webhook_request_seconds_bucket{le="0.1"} 0+10x60
			kausality_webhook_request_seconds_bucket{le="+Inf"} 0+10x60`,
		},
		"KausalityRightsMissing": {`kausality_missing_rights{group="apps", resource="deployments"} 1x60`, `kausality_missing_rights{group="apps", resource="deployments"} 0x60`},
		"KausalityPolicyNotReady": {
			`kausality_policies_not_ready{kind="Enforcement", reason="Invalid"} 1x60`, `kausality_policies_not_ready{kind="Enforcement", reason="Invalid"} 0x60`,
		},
		"KausalityExpressionFails": {
			`kausality_gate_expression_errors_total{kind="AllowancePolicy", name="p"} 0+1x60`,
			`kausality_webhook_expression_errors_total{kind="AllowancePolicy", name="p"} 7x60`,
		},
		"KausalityPolicyCostly": {
			`kausality_webhook_policy_cost_bucket{policy="p", le="1e+06"} 0x60
			kausality_webhook_policy_cost_bucket{policy="p", le="1e+07"} 0+10x60
			kausality_webhook_policy_cost_bucket{policy="p", le="+Inf"} 0+10x60`,
			`kausality_function_policy_cost_bucket{policy="p", le="100"} 0+10x60
			kausality_function_policy_cost_bucket{policy="p", le="+Inf"} 0+10x60`,
		},
		"KausalityEnforcementRefusesAll": {
			`kausality_webhook_enforcement_decisions_total{enforcement="e", decision="Denied"} 0+1x60`,
			`kausality_webhook_enforcement_decisions_total{enforcement="e", decision="Denied"} 0+1x60
			kausality_webhook_enforcement_decisions_total{enforcement="e", decision="Allowed"} 0+1x60`,
		},
		"KausalityEventsDropped":   {"kausality_events_dropped_total 0+1x60", "kausality_events_dropped_total 7x60"},
		"KausalityGateOverdue":     {"kausality_gates_overdue" + gauge + "2x60", "kausality_gates_overdue" + gauge + "0x60"},
		"KausalityResourceUngated": {"kausality_ungated_resources" + gauge + "2x60", "kausality_ungated_resources" + gauge + "0x60"},
		"KausalityResourceWithoutGate": {
			"kausality_resources_without_gate" + gauge + "2x60", "kausality_resources_without_gate" + gauge + "0x60",
		},
		"KausalityDrift": {"kausality_drifted_resources" + gauge + "2x90", "kausality_drifted_resources" + gauge + "0x90"},
		"KausalityOrphaned": {
			`kausality_left_behind_total{left="external", group="g", kind="k"} 0+1x60`,
			`kausality_left_behind_total{left="external", group="g", kind="k"} 1x60`,
		},
		"KausalityGateReclosed": {
			`kausality_gate_moves_total{group="g", kind="k", move="Reclose"} 0+1x60`,
			`kausality_gate_moves_total{group="g", kind="k", move="Close"} 0+1x60`,
		},
		"KausalityChangesHeld": {
			`kausality_function_held_changes_total{composite_kind="XDatabase"} 0+1x60`,
			`kausality_function_held_changes_total{composite_kind="XDatabase"} 7x60`,
		},
		"KausalityChangeWaits": {"kausality_pending_oldest_seconds 86401+60x60", "kausality_pending_oldest_seconds 82000+60x60"},
		"KausalityBreakGlass": {
			`kausality_approvals_total{decision="BreakGlass", state="Granted"} 0x10 1x60`,
			`kausality_approvals_total{decision="Approve", state="Granted"} 0x10 1x60`,
		},
		"KausalityFunctionFails": {
			`kausality_function_calls_total{outcome="fatal"} 0+1x60`, `kausality_function_calls_total{outcome="held"} 0+1x60`,
		},
		"KausalityDenials": {
			`kausality_webhook_decisions_total{group="g", kind="k", decision="Denied"} 0+60x60`,
			`kausality_webhook_decisions_total{group="g", kind="k", decision="Allowed"} 0+60x60`,
		},
		"KausalityExceptionEnds": {
			`kausality_enforcement_exception_ending{enforcement="e", exception="x"} 2x60`,
			`kausality_enforcement_exception_ending{enforcement="e", exception="x"} 0x60`,
		},
	}

	for name, rule := range alerts(t) {
		tc, ok := cases[name]
		if !ok {
			t.Errorf("%s is not tested", name)
		}

		if !fires(t, rule, tc.fires) {
			t.Errorf("%s does not fire with %s", name, tc.fires)
		}

		if fires(t, rule, tc.rests) {
			t.Errorf("%s fires with %s", name, tc.rests)
		}
	}
}

// fires reports whether a rule does in the course of an hour, or of as long as
// it waits.
func fires(t *testing.T, rule rulefmt.Rule, series string) bool {
	t.Helper()

	store := promqltest.LoadedStorage(t, "load 1m\n\t"+series)
	defer func() { _ = store.Close() }()

	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 100000)
	since := -1

	for minute := range max(60, int(time.Duration(rule.For)/time.Minute)+1) {
		q, err := engine.NewInstantQuery(t.Context(), store, nil, rule.Expr, time.Unix(int64(minute)*60, 0))
		if err != nil {
			t.Fatal(err)
		}

		vector, err := q.Exec(t.Context()).Vector()
		q.Close()

		switch {
		case err != nil:
			t.Fatal(err)
		case len(vector) == 0:
			since = -1

			continue
		case since < 0:
			since = minute
		}

		if time.Duration(minute-since)*time.Minute >= time.Duration(rule.For) {
			return true
		}
	}

	return false
}
