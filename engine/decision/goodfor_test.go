// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestADecisionIsGoodForAsLongAsTimeMakesNoDifference(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	const (
		head   = "{metadata: {name: a}, spec: {allow: [{kind: Pod, mutations: [spec]}], "
		opens  = `{metadata: {name: w}, spec: {serviceAccount: "system:serviceaccount:a:b", validFrom: "2026-01-01T00:00:20Z", validUntil: "2026-01-02T00:00:00Z", allow: [{kind: Pod, mutations: [spec]}]}}`
		closes = `{metadata: {name: w}, spec: {serviceAccount: "system:serviceaccount:a:b", validFrom: "2025-01-01T00:00:00Z", validUntil: "2026-01-01T00:00:00Z", allow: [{kind: Pod, mutations: [spec]}]}}`
	)

	about := func(match string) string { return head + "match: {kind: Widget, fields: [spec], " + match + "}}}" }

	cases := map[string]struct {
		reason, policy, window, enforcement string
		want                                time.Duration
	}{
		"Nothing":   {"Time makes none.", about(""), "", "", time.Hour},
		"Now":       {"It may, at any moment.", about(`cel: ["now < timestamp('2027-01-01T00:00:00Z')"]`), "", "", time.Minute},
		"Condition": {"Also by a condition with a name.", about(`matchConditions: [{name: a, expression: "now.getFullYear() == 2026"}]`), "", "", time.Minute},
		"Message":   {"Or in what that says.", about(`matchConditions: [{name: a, expression: "false", messageExpression: "string(now)"}]`), "", "", time.Minute},
		"Variable":  {"Or a variable.", about(`variables: [{name: late, expression: "now > timestamp('2027-01-01T00:00:00Z')"}], cel: ["variables.late"]`), "", "", time.Minute},
		"Absolute":  {"By whatever name.", about(`cel: [".now.getFullYear() == 2026"]`), "", "", time.Minute},
		"Shadow": {
			"What would be decided is said, too.", head + `enforcementMode: Shadow, match: {kind: Widget, fields: [spec], cel: ["now.getFullYear() == 2026"]}}}`, "", "", time.Minute,
		},
		"Word":        {"Other words with it are none.", about(`cel: ["object.spec.now == 'snow' && object.known"]`), "", "", time.Hour},
		"Enforcement": {"An Enforcement may read it.", about(""), "", `{metadata: {name: e}, spec: {match: {resourceRules: [{apiGroups: ['*'], resources: ['*']}]}, validationActions: [Deny], matchConditions: [{name: a, expression: "now.getFullYear() == 2026"}]}}`, time.Minute},
		"Opens":       {"A window opens sooner.", about(`cel: ["now.getFullYear() == 2026"]`), opens, "", 20 * time.Second},
		"Past":        {"One that is over does nothing.", about(""), closes, "", time.Hour},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := inforce.Objects{Policies: fixture.Documents[v1alpha1.AllowancePolicy](t, tc.policy)}
			if tc.window != "" {
				objects.Windows = fixture.Documents[v1alpha1.UpgradeAllowance](t, tc.window)
			}

			if tc.enforcement != "" {
				objects.Enforcements = fixture.Documents[v1alpha1.Enforcement](t, tc.enforcement)
			}

			set := inforce.NewCache().Set(objects)
			if len(set.Bad) > 0 {
				t.Fatal(set.Bad)
			}

			if got := set.Basis(request.Settings{}, now).GoodFor(time.Hour); got != tc.want {
				t.Errorf("%s\n%s, want %s", tc.reason, got, tc.want)
			}
		})
	}

	if got := (request.Basis{Now: now}).GoodFor(time.Hour); got != time.Hour {
		t.Errorf("%s where nothing is in force", got)
	}
}
