// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/explain"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
)

const (
	// workspace is an object that Terraform is run for.
	workspace = `{apiVersion: example.org/v1, kind: Workspace, metadata: {name: net, generation: 5, labels: {team: a}, annotations: {ANNOTATIONS}}}`
	// applied is what a change gave that a policy allowed.
	applied = `"kausality.io/allowances": "[{relation: External, mutations: [apply], generation: 5, initiator: hans, policy: net, id: '5.0', source: {type: Policy, name: net, field: spec.size}, trace: [{kind: Workspace, name: net, generation: 5, field: spec.size}]}]", ` +
		`"kausality.io/trace": "[{field: spec.size, generation: 5, initiator: hans}]"`

	netPolicy = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: net}
spec:
  match: {apiGroup: example.org, kind: Workspace, fields: [spec.size]}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{relation: External, mutations: [apply]}]
`
)

// deletedOf is what the deletion of a Workspace gives, where its change gave something.
func deletedOf(annotations string) string {
	return strings.NewReplacer("[apply]", "[destroy]", "type: Policy, name: net, field: spec.size", "type: Deletion, name: net", "spec.size", "delete").
		Replace(annotations)
}

func TestAnActionOfAnotherSystemIsAllowedForWhatWasAllowedLast(t *testing.T) {
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	window := func(change func(*v1alpha1.UpgradeAllowance)) []v1alpha1.UpgradeAllowance {
		w := v1alpha1.UpgradeAllowance{
			ObjectMeta: metav1.ObjectMeta{Name: "w"},
			Spec: v1alpha1.UpgradeAllowanceSpec{
				ValidFrom: metav1.NewTime(now), ValidUntil: metav1.NewTime(now.Add(time.Hour)),
				Allow:    []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Mutations: []string{"apply", "destroy"}}},
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
			},
		}
		change(&w)

		return []v1alpha1.UpgradeAllowance{w}
	}
	open := func(*v1alpha1.UpgradeAllowance) {}

	cases := map[string]struct {
		reason      string
		object      string
		annotations string
		action      string
		policies    string
		windows     []v1alpha1.UpgradeAllowance
		by          string
		missing     string
	}{
		"Allowed": {reason: "A change that a policy allowed lets it out.", annotations: applied, policies: netPolicy, by: "hans"},
		"Withdrawn": {
			reason: "Not once no policy gives it any more.", annotations: applied,
			missing: "spec.size was changed at generation 5, as hans asked, and that does not let apply out\n" +
				"no policy allows it: add an AllowancePolicy about Workspace, or about what owns it, that allows {relation: External, mutations: [apply]}",
		},
		"Beside": {
			reason: "What was changed with it, by another policy, would leave as well.", policies: netPolicy,
			annotations: strings.Replace(applied, `"[{field: spec.size,`, `"[{field: spec.region, generation: 5, initiator: hans}, {field: spec.size,`, 1),
			missing: "spec.region was changed at generation 5, as hans asked, and that does not let apply out\n" +
				`AllowancePolicy "net" allows it with a change of spec.size of Workspace that it allows: none is on record here`,
		},
		"WithinAGeneration": {
			reason: "So would what was changed later within the generation.", policies: netPolicy,
			annotations: strings.Replace(applied, `"[{field: spec.size, generation: 5, initiator: hans}]"`,
				`"[{field: spec.size, generation: 5, initiator: anna, trace: [{kind: Workspace, name: net, generation: 5, request: 1, field: spec.size}]}]"`, 1),
			missing: "spec.size was changed at generation 5, as anna asked, and that does not let apply out\n" +
				`AllowancePolicy "net" allows it with a change of spec.size of Workspace that it allows: none is on record here`,
		},
		"Settled": {
			reason: "It lasts when the object's controller is done.",
			object: strings.TrimSuffix(workspace, "}") + `, status: {observedGeneration: 9, conditions: [{type: Ready, status: "True", observedGeneration: 9}]}}`,

			annotations: applied, policies: netPolicy, by: "hans",
		},
		"AnotherAction": {
			reason: "Another action is another one.", annotations: applied, action: "destroy",
			missing: "spec.size was changed at generation 5, as hans asked, and that does not let destroy out\n" +
				"no policy allows it: add an AllowancePolicy about Workspace, or about what owns it, that allows {relation: External, mutations: [destroy]}",
		},
		"ChangedSince": {
			reason:      "A newer change that does not let it out would leave with it.",
			annotations: strings.Replace(applied, "generation: 5, initiator: hans}]", "generation: 6, initiator: anna}]", 1),
			missing: "spec.size was changed at generation 6, as anna asked, and that does not let apply out\n" +
				`AllowancePolicy "net" allows it with a change of spec.size of Workspace that it allows: none is on record here`,
			policies: netPolicy,
		},
		"LabelledSince": {
			reason: "What is said about the object goes nowhere.",
			annotations: strings.Replace(applied, `"[{field: spec.size, generation: 5, initiator: hans}]"`,
				`"[{field: \"metadata.labels[a]\", generation: 6, initiator: anna}, {field: spec.size, generation: 5, initiator: hans}]"`, 1), policies: netPolicy, by: "hans",
		},
		"Edited": {
			reason:      "So would what somebody stored who may not, whoever allows the rest.",
			annotations: applied + `, "kausality.io/held": "[{field: spec.region, cause: {type: Edit, user: anna, since: \"2026-01-01T00:00:00Z\"}, stored: {}}]"`,
			windows:     window(open),
			missing:     "spec.region was changed by anna without permission. Revert it, or ask someone with permission to change it",
		},
		"Never": {
			reason:  "Without a policy it is never allowed.",
			missing: "no policy allows it: add an AllowancePolicy about Workspace, or about what owns it, that allows {relation: External, mutations: [apply]}",
		},
		"NotYet": {
			reason: "With one it is once somebody changes what that names.", policies: netPolicy,
			missing: `AllowancePolicy "net" allows it with a change of spec.size of Workspace that it allows: none is on record here`,
		},
		"ByDeletion": {
			reason:      "What a deletion gives is for what is deleted.",
			annotations: deletedOf(applied), action: "destroy",
			policies: strings.Replace(netPolicy, "[apply]", "[destroy]", 1), missing: `AllowancePolicy "net" allows it with a change of spec.size of Workspace that it allows: none is on record here`,
		},
		"Deleting": {
			reason:      "While it is.",
			object:      strings.Replace(workspace, "name: net,", `name: net, deletionTimestamp: "2026-01-01T00:00:00Z",`, 1),
			annotations: deletedOf(applied), action: "destroy",
			policies: strings.Replace(netPolicy, "[apply]", "[destroy]", 1), by: "hans",
		},
		"Window": {reason: "A window lets out what it selects.", windows: window(open), by: "UpgradeAllowance/w"},
		"WindowForDeletions": {
			reason: "But no deletion.", windows: window(open), action: "destroy",
			missing: "no policy allows it: add an AllowancePolicy about Workspace, or about what owns it, that allows {relation: External, mutations: [destroy]}",
		},
		"WindowSuspended": {
			reason: "One that is suspended does not.", windows: window(func(w *v1alpha1.UpgradeAllowance) { w.Spec.Suspend = true }),
			missing: `UpgradeAllowance "w" allows it, and is suspended`,
		},
		"WindowOver": {
			reason: "Nor one that is over.", windows: window(func(w *v1alpha1.UpgradeAllowance) { w.Spec.ValidUntil = metav1.NewTime(now) }),
			missing: `UpgradeAllowance "w" allows it, and is not in force`,
		},
		"WindowForOthers": {
			reason:  "Nor one for something else.",
			windows: window(func(w *v1alpha1.UpgradeAllowance) { w.Spec.Selector.MatchLabels["team"] = "b" }),
			missing: "no policy allows it: add an AllowancePolicy about Workspace, or about what owns it, that allows {relation: External, mutations: [apply]}",
		},
		"GateOpen": {
			reason: "Of Crossplane's actions the gate tells.", object: managedWorkspace, action: "Update",
			annotations: `"kausality.io/gate": "{v: 1, state: Open, actions: [Update], generation: 5, since: \"2026-01-01T00:00:00Z\", allowances: [{relation: External, mutations: [Update], generation: 5, initiator: hans, id: '5.0', source: {type: Policy}}]}"`,
			by:          "hans",
		},
		"GateClosed": {
			reason: "A closed one lets nothing out.", object: managedWorkspace, action: "Update",
			annotations: `"kausality.io/gate": "{v: 1, state: Closed, generation: 5, since: \"2026-01-01T00:00:00Z\"}"`,
			missing:     "its gate is not open for Update: an allowed change of it opens the gate",
		},
		"NoGate": {
			reason: "And what is no managed resource has none.", action: "Update",
			missing: "Update is an action of Crossplane's providers, which gates allow: ask about a managed resource",
		},
		"EditedAndNotApproved": {
			reason:      "And what waits for the approval of others.",
			annotations: applied + `, "kausality.io/held": "[{field: spec.region, cause: {type: Edit, user: anna, since: \"2026-01-01T00:00:00Z\"}, stored: {approvals: 2}}]"`,
			missing:     "spec.region was changed by anna, which needs the approval of 2 other people",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.object == "" {
				tc.object = workspace
			}

			if tc.action == "" {
				tc.action = "apply"
			}

			got, err := explain.DecideAction(explain.ActionRequest{
				Object: object(t, strings.Replace(tc.object, "ANNOTATIONS", tc.annotations, 1)), Action: tc.action,
				Basis: request.Basis{Policies: set(t, tc.policies), Upgrades: compiled(t, tc.windows...), Now: now},
			})
			if err != nil {
				t.Fatal(err)
			}

			by := make([]string, 0, 1)
			for _, a := range got.By {
				by = append(by, a.Initiator)
			}

			if got.Allowed != (tc.missing == "") || strings.Join(by, ", ") != tc.by || strings.Join(got.Missing, "\n") != tc.missing {
				t.Errorf("%s\nDecideAction: %+v, want by %q, missing:\n%s", tc.reason, got, tc.by, tc.missing)
			}
		})
	}
}

// managedWorkspace is one that a provider makes.
const managedWorkspace = `{apiVersion: example.org/v1, kind: Workspace, metadata: {name: net, generation: 5, annotations: {ANNOTATIONS}},
  spec: {forProvider: {size: large}, managementPolicies: [Observe, Update]}}`

func TestNothingIsAllowedWhereARecordDoesNotParse(t *testing.T) {
	for _, annotation := range []string{"allowances", "held", "trace"} {
		got, err := explain.DecideAction(explain.ActionRequest{
			Object: object(t, strings.Replace(workspace, "ANNOTATIONS", `"kausality.io/`+annotation+`": "}"`, 1)), Action: "apply",
		})
		if err == nil || got.Allowed || !strings.Contains(err.Error(), annotation) {
			t.Errorf("%s: %+v, %v", annotation, got, err)
		}
	}
}
