// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import "github.com/kausality-io/kausality-crossplane/test/play"

// situation is something that people meet, and how they get out of it. Bucket NAME in
// namespace shop was made before any of it, and has settled.
type situation struct {
	// name of the bucket.
	name string
	// title says what happened.
	title string
	// policies are what was applied before.
	policies string
	// before leads there.
	before []play.Command
	// does is what is done, and says what is read at once.
	does play.Command
	// fails is true where that is refused.
	fails bool
	// until is what the condition says then; where there is no bucket any more, or the
	// change is refused, an event.
	until string
	// remedy says how to get out of it, for a person.
	remedy string
	// fix does that.
	fix []play.Command
	// outside is what the external object has then, as KEY=VALUE; empty for what it
	// had before.
	outside string
	// alone is true where the managed resource has no owner then.
	alone bool
}

const (
	anna = "anna"
	hans = "hans"
)

// bySize is a policy that allows a change of the size, with all that results from it.
const bySize = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: bucket-size}
spec:
  match: {apiGroup: shop.example.org, kind: Bucket, fields: [spec.size]}
  subjects: [{kind: Group, name: app-team, mayInitiate: true}]
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.size]}
  - {relation: External, mutations: [Update]}
`

const byColor = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: bucket-color}
spec:
  match: {apiGroup: shop.example.org, kind: Bucket, fields: [spec.color]}
  subjects: [{kind: Group, name: app-team, mayInitiate: true}]
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.color]}
  - {relation: External, mutations: [Update]}
`

const nobodyPaints = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: color-stays}
spec:
  match: {apiGroup: shop.example.org, kind: Bucket, fields: [spec.color]}
  allow: []
`

const enforced = `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: buckets}
spec:
  match: {resourceRules: [{apiGroups: [shop.example.org], resources: [buckets]}]}
  validationActions: [Deny]
`

// resize changes the size of a bucket.
func resize(user, name, size string) play.Command {
	return play.Command{User: user, Text: "kubectl patch bucket " + name + " -n shop --type merge -p '{\"spec\": {\"size\": \"" + size + "\"}}'"}
}

// paint has anna paint a bucket blue.
func paint(name string) play.Command {
	return play.Command{User: anna, Text: "kubectl patch bucket " + name + " -n shop --type merge -p '{\"spec\": {\"color\": \"blue\"}}'"}
}

func apply(manifest string) play.Command {
	return play.Command{Text: "kubectl apply -f - <<'EOF'" + manifest + "EOF"}
}

// all are the situations, in the order of the page.
func all() []situation {
	return []situation{
		{
			name: "unnamed", title: "No policy names the field",
			policies: bySize, does: paint("unnamed"), until: "1 change held",
			remedy: "Take it back, or have a policy name the field, and store the same again.",
			fix:    []play.Command{apply(byColor), paint("unnamed")}, outside: "color=blue",
		},
		{
			name: "compiles-not", title: "A policy that does not compile is applied",
			does:  apply(replace(bySize, "fields: [spec.size]", `fields: [spec.size], cel: ["object.spec.size =="]`)),
			fails: true, remedy: "Correct the expression that it names; nothing was stored.",
			fix: []play.Command{apply(bySize), resize(anna, "compiles-not", "large")}, outside: "size=large",
		},
		{
			name: "group", title: "The policy is about another API group",
			policies: replace(bySize, "match: {apiGroup: shop.example.org", "match: {apiGroup: store.example.org"),
			does:     resize(anna, "group", "large"), until: "1 change held",
			remedy: "Correct the group in the policy, take the change back, and make it again: where no policy is about the kind nothing was recorded of it.",
			fix:    []play.Command{apply(bySize), resize(anna, "group", "small"), resize(anna, "group", "large")}, outside: "size=large",
		},
		{
			name: "path", title: "The policy names a path that does not exist",
			policies: replace(bySize, "fields: [spec.size]", "fields: [spec.sise]"),
			does:     resize(anna, "path", "large"), until: "1 change held",
			remedy: "Correct the path in the policy, and store the same again.",
			fix:    []play.Command{apply(bySize), resize(anna, "path", "large")}, outside: "size=large",
		},
		{
			name: "subject", title: "Somebody else may do it",
			policies: replace(bySize, "app-team", "platform-team"),
			does:     resize(anna, "subject", "large"), until: "1 change held",
			remedy: "Take it back, and ask one of those who may; or have the policy name your group, and store the same again.",
			fix:    []play.Command{resize(anna, "subject", "small"), resize(hans, "subject", "large")}, outside: "size=large",
		},
		{
			name: "ticket", title: "A condition is not met",
			policies: replace(bySize, "fields: [spec.size]}", `fields: [spec.size], cel: ["has(object.metadata.annotations) && 'ticket' in object.metadata.annotations"]}`),
			does:     resize(anna, "ticket", "large"), until: "1 change held",
			remedy: "Add what is missing: it counts for the change that you made.",
			fix:    []play.Command{{User: anna, Text: "kubectl annotate bucket ticket -n shop ticket=INFRA-7"}}, outside: "size=large",
		},
		{
			name: "broken", title: "An expression of the policy cannot be evaluated",
			policies: replace(bySize, "fields: [spec.size]}", `fields: [spec.size], cel: ["object.metadata.annotations['ticket'] != ''"]}`),
			does:     resize(anna, "broken", "large"), until: "1 change held",
			remedy: "Correct the expression, and store the same again.",
			fix: []play.Command{
				apply(replace(bySize, "fields: [spec.size]}", `fields: [spec.size], cel: ["!has(object.metadata.annotations) || !('frozen' in object.metadata.annotations)"]}`)),
				resize(anna, "broken", "large"),
			},
			outside: "size=large",
		},
		{
			name: "nobody", title: "A policy says that nobody may",
			policies: bySize + "---" + nobodyPaints,
			does:     paint("nobody"), until: "1 change held",
			remedy: "Take it back. If it has to be, have another policy let somebody, and store the same again.",
			fix:    []play.Command{apply(byColor), paint("nobody")}, outside: "color=blue",
		},
		{
			name: "external", title: "The policy allows nothing outside",
			policies: replace(bySize, "  - {relation: External, mutations: [Update]}\n", ""),
			does:     resize(anna, "external", "large"), until: "1 change held",
			remedy: "Have the policy allow External Update, and ask for it again: back to the old value, and to the new one.",
			fix:    []play.Command{apply(bySize), resize(anna, "external", "small"), resize(anna, "external", "large")}, outside: "size=large",
		},
		{
			name: "revision", title: "It came with a Composition or a function",
			policies: bySize,
			does:     play.Command{Text: "kubectl get composition revision -o yaml | sed 's/version: v1$/version: v2/' | kubectl apply -f -"}, until: "1 change held",
			remedy: "Open a window for it: an UpgradeAllowance for Crossplane's service account.",
			fix:    []play.Command{apply(window)}, outside: "version=v2",
		},
		{
			name: "suspended", title: "There is a window for it, which is not in force",
			policies: replace(window, "spec:\n", "spec:\n  suspend: true\n"),
			does:     play.Command{Text: "kubectl get composition suspended -o yaml | sed 's/version: v1$/version: v2/' | kubectl apply -f -"}, until: "is suspended",
			remedy: "See why with kubectl get upgradeallowances; this one is suspended.",
			fix:    []play.Command{{Text: "kubectl patch upgradeallowance new-version --type merge -p '{\"spec\": {\"suspend\": false}}'"}}, outside: "version=v2",
		},
		{
			name: "deny", title: "An Enforcement denies it",
			policies: replace(bySize, "app-team", "platform-team") + "---" + enforced,
			does:     resize(anna, "deny", "large"), fails: true, until: "KausalityDenied",
			remedy: "Ask one of those who may.",
			fix:    []play.Command{resize(hans, "deny", "large")}, outside: "size=large",
		},
		{
			name: "hand", title: "Somebody edits a managed resource",
			policies: bySize,
			does: play.Command{User: hans, Text: "kubectl patch $(kubectl get objects.kubernetes.m.crossplane.io -n shop -l crossplane.io/composite=hand -o name) " +
				"-n shop --type merge -p '{\"spec\": {\"forProvider\": {\"manifest\": {\"data\": {\"extra\": \"x\"}}}}}'"},
			until:  ": settled",
			remedy: "Change the XR instead.",
			fix:    []play.Command{resize(anna, "hand", "large")}, outside: "size=large",
		},
		{
			name: "provider", title: "The change is allowed, and waits for its provider",
			policies: bySize,
			before: []play.Command{{Text: "kubectl annotate $(kubectl get objects.kubernetes.m.crossplane.io -n shop -l crossplane.io/composite=provider -o name) " +
				"-n shop crossplane.io/paused=true"}},
			does: resize(anna, "provider", "large"), until: ": in progress",
			remedy: "See what the gate waits for in the trace of the managed resource, and mend that; here it is paused.",
			fix: []play.Command{{Text: "kubectl annotate $(kubectl get objects.kubernetes.m.crossplane.io -n shop -l crossplane.io/composite=provider -o name) " +
				"-n shop crossplane.io/paused-"}},
			outside: "size=large",
		},
		{
			name: "edited", title: "A window does not apply where somebody edited the XR",
			policies: replace(bySize, "app-team", "platform-team"),
			before:   []play.Command{resize(anna, "edited", "large")},
			does:     apply(replace(window, "data.version", "data.size")), until: "does not apply",
			remedy: "Take the edit back, or have it made by somebody who may.",
			fix:    []play.Command{resize(anna, "edited", "small"), resize(hans, "edited", "large")}, outside: "size=large",
		},
		{
			name: "step", title: "The function was removed from the Composition",
			policies: bySize,
			does:     play.Command{Text: "kubectl patch composition step --type json -p '[{\"op\": \"remove\", \"path\": \"/spec/pipeline/2\"}]'"}, until: "has no step that runs function-kausality",
			remedy: "Put the step back.",
			fix: []play.Command{
				{Text: "kubectl patch composition step --type json -p '[{\"op\": \"add\", \"path\": \"/spec/pipeline/2\", \"value\": {\"step\": \"kausality\", \"functionRef\": {\"name\": \"function-kausality\"}}}]'"},
				resize(anna, "step", "large"),
			},
			outside: "size=large",
		},
		{
			name: "delete", title: "Nobody allowed the deletion of what is composed",
			policies: bySize, does: play.Command{User: anna, Text: "kubectl delete bucket delete -n shop"}, until: "KausalityManagedResourceOrphaned",
			remedy: "To keep the external object without the bucket, release the managed resource. To have the bucket back, create it paused, and adopt.",
			fix: []play.Command{
				{User: anna, Text: "kubectl kausality release $(kubectl get objects.kubernetes.m.crossplane.io -n shop -l crossplane.io/composite=delete -o name) -n shop"},
			},
			alone: true,
		},
	}
}

// window lets Crossplane make of what it composes what a new Composition wants.
const window = `
apiVersion: kausality.io/v1alpha1
kind: UpgradeAllowance
metadata: {name: new-version}
spec:
  serviceAccount: system:serviceaccount:crossplane-system:crossplane
  namespaces: [shop]
  validFrom: "2026-01-01T00:00:00Z"
  validUntil: "2126-01-01T00:00:00Z"
  allow:
  - {apiGroup: kubernetes.m.crossplane.io, kind: Object, mutations: [spec.forProvider.manifest.data.version]}
  - {relation: External, mutations: [Update]}
`
