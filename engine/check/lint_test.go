// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// Parts of the documents of the tests.
const (
	people     = `{kind: Group, name: dba, mayInitiate: true}`
	crossplane = `{kind: ServiceAccount, namespace: crossplane-system, name: crossplane}`
	update     = `{relation: External, mutations: [Update]}`

	// xdatabase leads from the XR's size to the managed resource, and outside.
	xdatabase = `{metadata: {name: xr}, spec: {match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + crossplane + `],
  allow: [{kind: Instance, mutations: [spec.forProvider.class]}, ` + update + `]}}`
	// claim leads from the Claim's size to the XR's.
	claim = `{metadata: {name: claim}, spec: {match: {kind: DatabaseClaim, fields: [spec.size]}, subjects: [` + people + `, ` + crossplane + `],
  allow: [{kind: XDatabase, mutations: [spec.size]}]}}`
	window = `kind: UpgradeAllowance
metadata: {name: w}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  validFrom: "2026-05-01T00:00:00Z"
  validUntil: "2026-07-01T00:00:00Z"
`
	binding = `kind: AllowanceBinding
metadata: {name: b, namespace: shop}
spec: {policy: p, subjects: [{kind: Group, name: shop}]}`
	enforcement = `kind: Enforcement
metadata: {name: e}
spec:
  validationActions: [Deny]
  match: {resourceRules: [{apiGroups: [example.org], resources: [xdatabases]}]}
`
)

// onXR is a policy about the XR's size, by which people may initiate, with what else its
// spec has.
func onXR(name, more string) string {
	return `{metadata: {name: ` + name + `}, spec: {match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + people + `, ` + crossplane + `], ` + more + `}}`
}

// given is one of which only the match is of interest.
func given(name, match, subjects string) string {
	return `{metadata: {name: ` + name + `}, spec: {match: {kind: Workspace, ` + match + `}, subjects: [` + subjects + `],
  allow: [{kind: ConfigMap, mutations: [data]}]}}`
}

func cases() map[string]struct {
	reason    string
	documents string
	want      []string
} {
	type tc = struct {
		reason    string
		documents string
		want      []string
	}

	const next = "\n---\n"

	return map[string]tc{
		"Chain": {
			reason:    "From the Claim to what is outside each link is there.",
			documents: claim + next + xdatabase,
		},
		"ChainWithoutXR": {
			reason:    "No policy is about what the Claim's may change.",
			documents: claim,
			want:      []string{"0 chain-ends spec.allow[0].mutations[0]: no AllowancePolicy is about XDatabase: its spec.size may change, and what it is made of does not follow"},
		},
		"ChainOfAnotherField": {
			reason:    "One about another field is none about this one; one in Shadow mode is none at all.",
			documents: claim + next + `{metadata: {name: engine}, spec: {match: {kind: XDatabase, fields: [spec.engine]}, subjects: [` + people + `, ` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}` + next + `{metadata: {name: shadow}, spec: {enforcementMode: Shadow, match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"0 chain-ends spec.allow[0].mutations[0]: none of the AllowancePolicies about XDatabase names spec.size: it may change, and what it is made of does not follow"},
		},
		"ChainOfDeletion": {
			reason:    "A deletion has to be handed on, a creation and metadata have not.",
			documents: `{metadata: {name: c}, spec: {match: {kind: DatabaseClaim, fields: [delete]}, subjects: [` + people + `, ` + crossplane + `], allow: [{kind: XDatabase, mutations: [delete, create, "metadata.labels[x]", spec.size]}]}}` + next + xdatabase,
			want:      []string{"0 chain-ends spec.allow[0].mutations[0]: no AllowancePolicy is about delete of XDatabase: it may be deleted, and the managed resources that it is made of stay"},
		},
		"ChainOfAComposition": {
			reason:    "Of what is neither a Claim nor an XR nothing is known to be made.",
			documents: given("w", "fields: [spec.size]", people),
		},
		"OtherChild": {
			reason:    "For a Claim Crossplane makes its XR and nothing else.",
			documents: `{metadata: {name: c}, spec: {match: {kind: DatabaseClaim, fields: [spec.size]}, subjects: [` + people + `, ` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"0 not-composed spec.allow[0].kind: Crossplane makes XDatabase for a DatabaseClaim, and no ConfigMap"},
		},
		"CrossplaneIsNotListed": {
			reason:    "Who else is listed changes nothing that Crossplane makes.",
			documents: `{metadata: {name: c}, spec: {match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + people + `, {kind: Group, name: platform}], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"0 nobody-exercises spec.subjects: what is made for a XDatabase Crossplane changes (system:serviceaccount:crossplane-system:crossplane), and of the subjects only Group platform may"},
		},
		"CrossplanesGroupIsListed": {
			reason:    "Crossplane may be listed by a group that it is in.",
			documents: `{metadata: {name: c}, spec: {match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + people + `, {kind: Group, name: "system:serviceaccounts:crossplane-system"}], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
		},
		"NobodyIsListed": {
			reason:    "Where nobody is listed, anybody may.",
			documents: `{metadata: {name: c}, spec: {match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + people + `], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"0 anybody-exercises spec.subjects: anybody may make the changes that the policy allows of what is made for a XDatabase"},
		},
		"NobodyIsListedElsewhere": {
			reason:    "Who makes what belongs to other kinds is not known.",
			documents: given("w", "fields: [spec.size]", people),
		},
		"WithoutExternal": {
			reason:    "What a managed resource is to be outside goes with External Update, what else it has does not.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [spec.forProvider.class, spec, "metadata.labels[x]"]}]`),
			want: []string{
				"0 external-missing spec.allow[0].mutations[0]: spec.forProvider.class of Instance is allowed without External Update: its gate does not open for it, and it is held",
				"0 external-missing spec.allow[0].mutations[1]: spec of Instance is allowed without External Update: its gate does not open for it, and it is held",
			},
		},
		"MadeAnew": {
			reason:    "Or with Delete and Create.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [spec.forProvider]}, {relation: External, mutations: [Delete, Create]}]`),
		},
		"DeleteForAField": {
			reason:    "A gate opens for Delete because of a deletion.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [spec.forProvider]}, {relation: External, mutations: [Update, Delete]}]`),
			want:      []string{"0 external-unused spec.allow[1]: External Delete does nothing here: a gate opens for Delete because of a deletion, and the policy allows none"},
		},
		"DeleteForADeletion": {
			reason:    "So it does where the same policy allows one.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [spec.forProvider, delete]}, {relation: External, mutations: [Update, Delete]}]`),
		},
		"WindowWithoutExternal": {
			reason:    "So it is in a window.",
			documents: window + "  allow: [{kind: Instance, mutations: [spec.forProvider]}]",
			want:      []string{"0 external-missing spec.allow[0].mutations[0]: spec.forProvider of Instance is allowed without External Update: its gate does not open for it, and it is held"},
		},
		"DeletedWithoutExternal": {
			reason:    "The deletion of a managed resource goes with External Delete.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [delete]}, `+update+`]`),
			want:      []string{"0 external-delete-missing spec.allow[0].mutations[0]: delete of Instance is allowed without External Delete: its gate does not open for it, and it is not deleted"},
		},
		"ExternalWithoutManaged": {
			reason:    "Actions go with a change of a managed resource that the same policy allows.",
			documents: onXR("p", `allow: [{kind: ConfigMap, mutations: [data]}, {relation: External, mutations: [Update, Delete]}]`) + next + onXR("q", `allow: [`+update+`]`),
			want: []string{
				"0 external-unused spec.allow[1]: External Update or Delete is given together with a change of a managed resource, and the policy allows none",
				`1 covered-policy metadata.name: AllowancePolicy "p" allows all that this one does, to the same subjects`,
				"1 external-unused spec.allow[0]: External Update is given together with a change of a managed resource, and the policy allows none",
			},
		},
		"ExternalOfOthers": {
			reason:    "Other systems have verbs of their own, and what is not known may be a managed resource.",
			documents: `{metadata: {name: a}, spec: {match: {kind: Workspace, fields: [spec.size]}, subjects: [` + people + `], allow: [{relation: External, mutations: [apply]}]}}` + next + onXR("p", `allow: [{kind: Network, mutations: [create]}, {kind: Instance, mutations: [spec.forProvider]}, `+update+`]`) + next + `{metadata: {name: m}, spec: {match: {kind: Instance, fields: [delete]}, subjects: [` + people + `], allow: [{relation: External, mutations: [Delete]}]}}`,
			want: []string{
				"1 create-only spec.allow[0].mutations[0]: Network may be created, and no AllowancePolicy or UpgradeAllowance allows a change of its fields: once made it stays as it is",
				"1 not-checked spec.allow[0].kind: not checked: nothing that was read has the schema of Network",
			},
		},
		"Created": {
			reason:    "What may be created may be changed by another policy, or by a window.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [create]}, `+update+`]`) + next + window + "  allow: [{kind: Instance, mutations: [spec.forProvider]}, " + update + "]",
		},
		"CreatedOnly": {
			reason:    "Or by none.",
			documents: onXR("p", `allow: [{kind: Instance, mutations: [delete, create]}, {relation: External, mutations: [Create, Delete]}]`),
			want:      []string{"0 create-only spec.allow[0].mutations[1]: Instance may be created, and no AllowancePolicy or UpgradeAllowance allows a change of its fields: once made it stays as it is"},
		},
		"Twins": {
			reason:    "Of two policies that say the same the second one is found, whatever the order of what they list.",
			documents: given("a", "fields: [spec.size, spec.engine]", people) + next + given("b", "fields: [spec.engine, spec.size]", people),
			want:      []string{`1 duplicate-policy metadata.name: AllowancePolicy "a" says the same`},
		},
		"TwinsOfOthers": {
			reason:    "They may be for others.",
			documents: given("a", "fields: [spec.size]", people) + next + given("b", "fields: [spec.size]", `{kind: User, name: anna, mayInitiate: true}`),
			want:      []string{`1 duplicate-policy metadata.name: AllowancePolicy "a" matches and allows the same, for other subjects`},
		},
		"Covered": {
			reason:    "A policy for more subjects, about more fields and under fewer conditions covers another one, before or after it.",
			documents: given("narrow", `fields: [spec.size], cel: ["object.spec.size == 'x'"]`, people) + next + given("broad", "fields: [spec]", people+`, {kind: User, name: anna, mayInitiate: true}`) + next + given("alike", "fields: [spec]", people),
			want: []string{
				`0 covered-policy metadata.name: AllowancePolicy "broad" allows all that this one does, to the same subjects`,
				`2 covered-policy metadata.name: AllowancePolicy "broad" allows all that this one does, to the same subjects`,
			},
		},
		"NotCovered": {
			reason: "It does not where anything of it is narrower: fields, conditions, selectors, subjects, children, or what is captured.",
			documents: given("base", `fields: [spec.size], capture: ["metadata.annotations[jira]"]`, people+`, {kind: Group, name: carriers}`) + next +
				given("fields", `fields: [spec], excludeFields: [spec.size], capture: ["metadata.annotations[jira]"]`, people+`, {kind: Group, name: carriers}`) + next +
				given("condition", `fields: [spec], cel: ["object.spec.size == 'x'"], capture: ["metadata.annotations[jira]"]`, people+`, {kind: Group, name: carriers}`) + next +
				given("selector", `fields: [spec], objectSelector: {matchLabels: {a: b}}, capture: ["metadata.annotations[jira]"]`, people+`, {kind: Group, name: carriers}`) + next +
				given("subjects", `fields: [spec.size], cel: ["object.spec.engine == 'x'"]`, `{kind: User, name: anna, mayInitiate: true}`) + next +
				given("carriers", `fields: [spec], capture: ["metadata.annotations[jira]"]`, people+`, {kind: Group, name: others}`) + next +
				`{metadata: {name: children}, spec: {match: {kind: Workspace, fields: [spec], capture: ["metadata.annotations[jira]"]}, subjects: [` + people + `], allow: [{kind: ConfigMap, mutations: [data.x]}]}}`,
		},
		"Forbidden": {
			reason:    "A policy that forbids is covered by none.",
			documents: `{metadata: {name: a}, spec: {match: {kind: Workspace, fields: [spec.size]}, allow: []}}` + next + given("b", "fields: [spec]", people),
		},
		"OneName": {
			reason:    "Of two of one name one replaces the other, of two kinds not.",
			documents: given("w", "fields: [spec.size]", people) + next + given("w", "fields: [spec.engine]", people) + next + window + "  allow: [{kind: ConfigMap, mutations: [data]}]",
			want:      []string{`1 duplicate-object metadata.name: AllowancePolicy "w" is there twice: the one that is applied last replaces the other`},
		},
		"OneNameInNamespaces": {
			reason:    "So it is in one namespace.",
			documents: given("p", "fields: [spec.size]", people) + next + binding + next + binding,
			want: []string{
				`1 binding-policy spec.policy: AllowancePolicy "p" says nothing of bindings: its bindingMode has to be Optional or Required`,
				`2 binding-policy spec.policy: AllowancePolicy "p" says nothing of bindings: its bindingMode has to be Optional or Required`,
				`2 duplicate-object metadata.name: AllowanceBinding "shop/b" is there twice: the one that is applied last replaces the other`,
			},
		},
		"Constant": {
			reason: "A condition reads something.",
			documents: given("p", `fields: [spec.size], cel: ["true", "object.spec.size == 'x'"], matchConditions: [{name: a, expression: "1 > 2"}]`, people) + next +
				enforcement + `  matchConditions: [{name: a, expression: "false"}]` + next + given("q", "fields: [spec.engine]", people) + next +
				`{kind: AllowanceBinding, metadata: {name: b, namespace: shop}, spec: {policy: p, subjects: [{kind: User, name: u}], matchConditions: [{name: a, expression: "true"}]}}`,
			want: []string{
				"0 constant-condition spec.match.cel[0]: it is always true",
				"0 constant-condition spec.match.matchConditions[0].expression: it is never true: the policy never matches",
				"1 constant-condition spec.matchConditions[0].expression: it is never true: the Enforcement is about nothing",
				`3 binding-policy spec.policy: AllowancePolicy "p" says nothing of bindings: its bindingMode has to be Optional or Required`,
				"3 constant-condition spec.matchConditions[0].expression: it is always true",
			},
		},
		"Bound": {
			reason:    "A binding of a policy that lets it is in force; Crossplane initiates nothing by it.",
			documents: `{metadata: {name: p}, spec: {bindingMode: Required, match: {kind: Workspace, fields: [spec.size]}, allow: [{kind: ConfigMap, mutations: [data]}]}}` + next + `{kind: AllowanceBinding, metadata: {name: b, namespace: shop}, spec: {policy: p, subjects: [` + crossplane + `], matchConditions: [{name: a, expression: "object.spec.sice == 'x'"}]}}`,
			want: []string{
				"1 binding-subject spec.subjects[0]: Crossplane, its providers, Kausality and Kubernetes' own controllers initiate nothing by a binding",
				"1 cel-type spec.matchConditions[0].expression: example.org/v1, kind Workspace: 1:12: undefined field 'sice'",
			},
		},
		"Unbound": {
			reason:    "A policy that requires a binding has one, and a binding its policy.",
			documents: `{metadata: {name: pp}, spec: {bindingMode: Required, match: {kind: Workspace, fields: [spec.size]}, allow: [{kind: ConfigMap, mutations: [data]}]}}` + next + binding,
			want: []string{
				"0 binding-missing spec.bindingMode: nobody initiates by the policy: it requires a binding, and none of those that were read is of it",
				`1 binding-policy spec.policy: there is no AllowancePolicy "p"`,
			},
		},
		"BindingAlone": {
			reason:    "Where no policy was read, those of the cluster are meant.",
			documents: binding,
		},
		"BindingOfABrokenOne": {
			reason:    "One of a policy that is refused is of none.",
			documents: given("p", "fields: ['spec[']", people) + next + binding,
			want: []string{
				`0 field-path spec.match.fields[0]: Invalid value: "spec[": not a field path: unterminated '[' at position 4`,
				`1 binding-policy spec.policy: AllowancePolicy "p" is refused, and so nobody initiates by its binding`,
			},
		},
		"BindingWithParameters": {
			reason:    "Parameters of its own take a policy that lets it.",
			documents: `{metadata: {name: p}, spec: {bindingMode: Optional, paramKind: {apiVersion: other.org/v1, kind: Limit}, paramRef: {name: a}, match: {kind: Workspace, fields: [spec.size]}, subjects: [` + people + `], allow: [{kind: ConfigMap, mutations: [data]}]}}` + next + `{kind: AllowanceBinding, metadata: {name: b, namespace: shop}, spec: {policy: p, subjects: [{kind: User, name: u}], paramRef: {name: own}}}`,
			want: []string{
				"0 not-checked spec.paramKind: what is read of params is not checked: nothing that was read has the schema of Limit of other.org/v1",
				`1 binding-policy spec.paramRef: the binding has a paramRef, and that of AllowancePolicy "p" is not overridable`,
			},
		},
		"Types": {
			reason: "Paths and expressions are compared with the schemas of the kinds, also in windows.",
			documents: `{metadata: {name: p}, spec: {match: {kind: Workspace, fields: [spec.sice], cel: ["object.spec.size > 1"], capture: [spec.x]}, subjects: [` + people + `], allow: [{kind: ConfigMap, mutations: [date]}, {relation: External, mutations: [update]}]}}` + next +
				window + "  allow: [{kind: ConfigMap, mutations: [date]}, {relation: External, mutations: [update]}]" + next +
				enforcement + `  matchConditions: [{name: a, expression: "object.spec.sice == 'x'"}]`,
			want: []string{
				"0 unknown-path spec.match.fields[0]: example.org/v1, kind Workspace: spec.sice: there is no such field; did you mean spec.size?",
				"0 cel-type spec.match.cel[0]: example.org/v1, kind Workspace: 1:18: found no matching overload for '_>_' applied to '(string, int)'",
				"0 unknown-path spec.match.capture[0]: example.org/v1, kind Workspace: spec.x: there is no such field; spec has engine, forProvider, size",
				"0 unknown-path spec.allow[0].mutations[0]: v1, kind ConfigMap: date: there is no such field; did you mean data?",
				"0 external-verb spec.allow[1].mutations[0]: update: did you mean Update? Verbs are compared letter by letter, and no gate opens for this one",
				"1 unknown-path spec.allow[0].mutations[0]: v1, kind ConfigMap: date: there is no such field; did you mean data?",
				"1 external-verb spec.allow[1].mutations[0]: update: did you mean Update? Verbs are compared letter by letter, and no gate opens for this one",
				"2 cel-type spec.matchConditions[0].expression: example.org/v1, kind XDatabase: 1:12: undefined field 'sice'",
			},
		},
		"Unreachable": {
			reason:    "Somebody may make use of a policy, by what others give or by itself.",
			documents: `{metadata: {name: p}, spec: {match: {kind: Workspace, fields: [spec.size]}, allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"0 unreachable spec.subjects: nobody can make use of the policy: no subject has mayInitiate: true, and no other AllowancePolicy or UpgradeAllowance allows spec.size of a Workspace"},
		},
		"MetBelow": {
			reason:    "What decides where a chain starts does not decide below.",
			documents: claim + next + `{metadata: {name: xr}, spec: {match: {kind: XDatabase, fields: [spec.size], cel: ["request.userInfo.username != ''"]}, subjects: [` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"1 met-below spec.match.cel[0]: it reads now, the authorizer, or who asks and how: it decides who may initiate a change, and counts as met where another policy or a window led to the change"},
		},
		"ApprovalOfNobody": {
			reason:    "Where nobody initiates by a policy nothing waits for approvals.",
			documents: claim + next + `{metadata: {name: xr}, spec: {approval: {required: 2}, match: {kind: XDatabase, fields: [spec.size]}, subjects: [` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want:      []string{"1 approval-idle spec.approval: nobody initiates anything by the policy, so that there is nothing to approve: give a subject mayInitiate: true, or leave approval out"},
		},
		"ApprovalOfTheWhole": {
			reason:    "Nor does a creation or a deletion.",
			documents: `{metadata: {name: p}, spec: {approval: {required: 2}, match: {kind: Workspace, fields: [create, spec.size, delete]}, subjects: [` + people + `], allow: [{kind: ConfigMap, mutations: [data]}]}}`,
			want: []string{
				"0 approval-idle spec.match.fields[0]: it does not wait for approvals: while the policy asks for them, nobody may create an object by it; name it in a policy without approval",
				"0 approval-idle spec.match.fields[2]: it does not wait for approvals: while the policy asks for them, nobody may delete an object by it; name it in a policy without approval",
			},
		},
		"ApprovalByBinding": {
			reason:    "Subjects of bindings initiate by it, too.",
			documents: `{metadata: {name: p}, spec: {approval: {required: 1}, bindingMode: Required, match: {kind: Workspace, fields: [spec.size]}, allow: [{kind: ConfigMap, mutations: [data]}]}}` + next + binding,
		},
		"ApprovalUnderDeny": {
			reason:    "What is refused, or held, has nothing follow that could be approved.",
			documents: onXR("p", `approval: {required: 2}, allow: [{kind: ConfigMap, mutations: [data]}]`) + next + enforcement + next + strings.NewReplacer("name: e}", "name: held}", "Deny", "Hold").Replace(enforcement),
			want: []string{
				`0 approval-refused spec.approval: Enforcement "e" (Deny) does not let a change of a XDatabase be stored that waits for approvals: nothing follows that could be approved`,
				`0 approval-refused spec.approval: Enforcement "held" (Hold) does not let a change of a XDatabase be stored that waits for approvals: nothing follows that could be approved`,
			},
		},
		"ApprovalUnderWarn": {
			reason:    "What is stored with a warning has, and what no Enforcement is about.",
			documents: onXR("p", `approval: {required: 2}, allow: [{kind: ConfigMap, mutations: [data]}]`) + next + strings.Replace(enforcement, "Deny", "Warn", 1) + next + `{metadata: {name: w}, spec: {approval: {required: 2}, match: {kind: Workspace, fields: [spec.size]}, subjects: [` + people + `], allow: [{kind: ConfigMap, mutations: [data]}]}}` + next + strings.Replace(enforcement, "name: e}", "name: d}", 1),
			want:      []string{`0 approval-refused spec.approval: Enforcement "d" (Deny) does not let a change of a XDatabase be stored that waits for approvals: nothing follows that could be approved`},
		},
		"ApprovalCovered": {
			reason: "A policy without approvals covers one that asks for them, and of those that ask the one that asks for more.",
			documents: given("free", "fields: [spec.size]", people) + next + given("asks", "fields: [spec.size]}, approval: {required: 1", people) + next +
				given("engine", "fields: [spec.engine]}, approval: {required: 2", people) + next + given("more", "fields: [spec.engine]}, approval: {required: 3", people),
			want: []string{
				`1 covered-policy metadata.name: AllowancePolicy "free" allows all that this one does, to the same subjects`,
				`2 covered-policy metadata.name: AllowancePolicy "more" allows all that this one does, to the same subjects`,
			},
		},
		"Over": {
			reason: "Windows and exceptions end the moment they are said to.",
			documents: `{kind: UpgradeAllowance, metadata: {name: w}, spec: {serviceAccount: "system:serviceaccount:a:b", validFrom: "2026-01-01T00:00:00Z", validUntil: "2026-06-01T12:00:00Z", allow: [{kind: ConfigMap, mutations: [data]}]}}` + next +
				enforcement + `  exceptions:
  - {name: a, subjects: [{kind: Group, name: dba}], mutations: [spec], until: "2026-06-01T12:00:00Z", reason: INFRA-7}
  - {name: b, subjects: [{kind: Group, name: dba}], mutations: [spec], until: "2026-06-01T12:00:01Z", reason: INFRA-8}`,
			want: []string{
				"0 window-over spec.validUntil: the window has ended at 2026-06-01T12:00:00Z, and allows nothing any more",
				`1 exception-over spec.exceptions[0].until: the exception "a" (INFRA-7) has ended at 2026-06-01T12:00:00Z, and lets nobody any more`,
			},
		},
		"Idle": {
			reason:    "A window that allows External alone selects something.",
			documents: window + "  allow: [" + update + "]",
			want:      []string{"0 window-idle spec.selector: the window allows only External actions and selects nothing, so it opens no gate: select managed resources by their labels, or all of them with {}"},
		},
		"NoSchema": {
			reason: "What is not checked is told, of each kind once.",
			documents: `{metadata: {name: p}, spec: {match: {kinds: [Network, DatabaseClame], fields: [spec.size]}, subjects: [` + people + `, ` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}` + next +
				`{metadata: {name: q}, spec: {match: {kind: Network, fields: [spec.size]}, subjects: [` + people + `, ` + crossplane + `], allow: [{kind: ConfigMap, mutations: [data]}]}}` + next +
				`{kind: Enforcement, metadata: {name: e}, spec: {validationActions: [Deny], match: {resourceRules: [{apiGroups: [example.org, "*"], resources: [xdatabase, "*"]}]}}}`,
			want: []string{
				"0 not-checked spec.match.kinds[0]: not checked: nothing that was read has the schema of Network",
				"0 not-checked spec.match.kinds[1]: not checked: nothing that was read has the schema of DatabaseClame",
				`1 covered-policy metadata.name: AllowancePolicy "p" allows all that this one does, to the same subjects`,
				"2 not-checked spec.match.resourceRules[0].resources[0]: not checked: nothing that was read defines xdatabase.example.org",
			},
		},
		"Refused": {
			reason: "What admission refuses is an error, and nothing else is said of it.",
			documents: `{metadata: {name: p}, spec: {match: {kind: Unknown, fields: [spec, "spec["], excludeFields: [data], cel: ["objekt"], variables: [{name: in, expression: "1"}], objectSelector: {matchExpressions: [{key: a, operator: X}]}}, subjects: [` + people + `], allow: [{kind: XDatabase, mutations: [spec.size, "spec..x"]}], gate: {closeWhen: "1 +", maxOpen: 1ms}}}` + next +
				enforcement + `  matchConditions: [{name: a, expression: "objekt"}]`,
			want: []string{
				`0 field-path spec.match.fields[1]: Invalid value: "spec[": not a field path: unterminated '[' at position 4`,
				`0 invalid-value spec.match.excludeFields[0]: Invalid value: "data": it is below none of fields`,
				`0 label-selector spec.match.objectSelector: Invalid value: "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:a,Operator:X,Values:[],},},}": "X" is not a valid label selector operator`,
				`0 invalid-value spec.match.variables[0].name: Invalid value: "in": a name is a letter or _, then letters, digits and _, is no word of CEL's own, and has no two _ in a row`,
				`0 cel-compile spec.match.cel[0]: Invalid value: "objekt": cannot compile CEL: 1:1: undeclared reference to 'objekt' (in container '')`,
				`0 field-path spec.allow[0].mutations[1]: Invalid value: "spec..x": not a field path: unexpected '.' at position 5`,
				`0 invalid-value spec.gate.maxOpen: Invalid value: "1ms": must be between 1s and 720h0m0s`,
				`0 cel-compile spec.gate.closeWhen: Invalid value: "1 +": cannot compile CEL: 1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`,
				`1 cel-compile spec.matchConditions[0].expression: Invalid value: "objekt": cannot compile CEL: 1:1: undeclared reference to 'objekt' (in container '')`,
			},
		},
	}
}

func TestObjectsAreCheckedByThemselvesAndTogether(t *testing.T) {
	t.Parallel()

	for name, tc := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found := check.Lint(input(t, tc.documents))
			got := make([]string, 0, len(found))

			for _, f := range found {
				got = append(got, fmt.Sprintf("%d %s %s: %s", f.Item, f.Rule, f.Field, f.Message))
			}

			slices.Sort(got)
			slices.Sort(tc.want)

			if diff := cmp.Diff(append([]string{}, tc.want...), got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEachRuleIsFoundOnce has each rule be found by a case, but for those of what the engine
// does not see: files, and the schemas of our kinds.
func TestEachRuleIsFoundOnce(t *testing.T) {
	t.Parallel()

	elsewhere := []string{
		typecheck.UnknownKind, typecheck.UnknownField, typecheck.Schema, typecheck.SchemaRule, typecheck.DuplicateKey, typecheck.UnreadableSchema, typecheck.ReadsElsewhere,
	}
	found := map[string]bool{}

	for _, tc := range cases() {
		for _, want := range tc.want {
			found[strings.Fields(want)[1]] = true
		}
	}

	seen := map[string]bool{}
	rank := 0

	for _, rule := range typecheck.Rules() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(rule.ID) || seen[rule.ID] {
			t.Errorf("rule %q: it is there twice, or its name is of another form", rule.ID)
		}

		if rule.Severity.Rank() < rank || !strings.HasSuffix(rule.Text, ".") {
			t.Errorf("rule %q: it is not in order of severity, or its text is no sentence", rule.ID)
		}

		if found[rule.ID] == slices.Contains(elsewhere, rule.ID) {
			t.Errorf("rule %q: found by a case: %t", rule.ID, found[rule.ID])
		}

		seen[rule.ID], rank = true, rule.Severity.Rank()
	}
}

func TestFindingsHaveTheSeverityOfTheirRule(t *testing.T) {
	t.Parallel()

	severities := map[string]typecheck.Severity{}
	for _, rule := range typecheck.Rules() {
		severities[rule.ID] = rule.Severity
	}

	for name, tc := range cases() {
		for _, f := range check.Lint(input(t, tc.documents)) {
			if f.Severity == "" || f.Severity != severities[f.Rule] {
				t.Errorf("%s: %s is of severity %q", name, f.Rule, f.Severity)
			}
		}
	}
}
