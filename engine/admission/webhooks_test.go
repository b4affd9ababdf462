// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestTheWebhooksAreAskedAboutWhatPoliciesAndEnforcementsName(t *testing.T) {
	cases := map[string]struct {
		reason       string
		policies     []string
		enforcements []string
		// closed and open are what is stamped, enforced what is refused, by the
		// webhook's name.
		closed, open []string
		enforced     map[string][]string
	}{
		"Nothing": {reason: "A kind that nobody names never costs a call."},
		"Policies": {
			reason:   "Kinds that policies name are stamped; deletions matter where a policy names them.",
			policies: []string{fixture.RolloutPolicy, fixture.DeletePolicy},
			open: []string{
				"/pods CREATE,UPDATE", "apps/deployments CREATE,UPDATE", "apps/replicasets CREATE,UPDATE,DELETE",
				"apps/deployments/scale,replicasets/scale UPDATE",
			},
		},
		"Crossplane": {
			reason:   "Crossplane's kinds fail closed, and their deletions are recorded. That of a namespace is too, and never waits for us.",
			policies: []string{fixture.ClaimPolicy},
			open:     []string{"/namespaces DELETE"},
			closed:   []string{"example.org/xdatabases CREATE,UPDATE,DELETE", "rds.aws.upbound.io/instances CREATE,UPDATE,DELETE"},
		},
		"Enforcement": {
			reason: "What is enforced is stamped too, and each Enforcement has a webhook; scaling has one without labels.",
			enforcements: []string{`{metadata: {name: apps}, spec: {match: {resourceRules: [{apiGroups: [apps], resources: ["*"]}],
				excludeResourceRules: [{apiGroups: [apps], resources: [replicasets]}], objectSelector: {matchLabels: {a: b}}}, validationActions: [Deny]}}`},
			open: []string{"apps/deployments CREATE,UPDATE,DELETE", "apps/deployments/scale UPDATE"},
			enforced: map[string][]string{
				"apps.enforcement.kausality.io":       {"apps/deployments CREATE,UPDATE,DELETE"},
				"apps.scale-enforcement.kausality.io": {"apps/deployments/scale UPDATE"},
			},
		},
		"Operations": {
			reason: "What is done to objects counts where a rule says so; their names and versions are looked at when it is asked about.",
			enforcements: []string{`{metadata: {name: pods}, spec: {match: {resourceRules: [
				{apiGroups: [""], resources: [pods], apiVersions: [v1], operations: [DELETE], resourceNames: [kept], scope: Namespaced},
				{apiGroups: [""], resources: [pods], apiVersions: [v2], operations: [DELETE]}]}, validationActions: [Deny]}}`},
			open:     []string{"/pods CREATE,UPDATE,DELETE"},
			enforced: map[string][]string{"pods.enforcement.kausality.io": {"/pods DELETE"}},
		},
		"Invalid": {
			reason:       "An Enforcement that does not compile is asked about as its failure policy says, whatever its selectors, and harms no other.",
			enforcements: []string{`{metadata: {name: bad}, spec: {match: {resourceRules: [{apiGroups: [""], resources: [pods]}], objectSelector: {matchExpressions: [{key: a, operator: Near}]}}, matchConditions: [{name: x, expression: "("}], validationActions: [Deny]}}`},
			open:         []string{"/pods CREATE,UPDATE,DELETE"},
			enforced:     map[string][]string{"bad.enforcement.kausality.io": {"/pods CREATE,UPDATE,DELETE"}},
		},
		"InvalidAndOpen": {
			reason:       "Where that is Ignore it enforces nothing.",
			enforcements: []string{`{metadata: {name: bad}, spec: {match: {resourceRules: [{apiGroups: [""], resources: [pods]}]}, matchConditions: [{name: x, expression: "("}], validationActions: [Deny], failurePolicy: Ignore}}`},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := Options{Namespace: "kausality-system", Server: Server{URL: "https://127.0.0.1", CABundle: []byte("ca")}}
			want := Config{Policies: fixture.Documents[v1alpha1.AllowancePolicy](t, tc.policies...), Enforcements: fixture.Documents[v1alpha1.Enforcement](t, tc.enforcements...)}

			kinds, _ := kind.Named(fixture.ServedKinds(), kind.Names(want.Policies, nil))
			enforced := Covered(want.Enforcements, fixture.ServedKinds())

			var closed, open []string

			for _, w := range c.mutating(GovernedKinds(want, kinds, enforced)) {
				if *w.FailurePolicy == admissionregistrationv1.Fail {
					closed = fixture.Asked(w.Rules)
				} else {
					open = fixture.Asked(w.Rules)
				}
			}

			if diff := cmp.Diff(tc.closed, closed); diff != "" {
				t.Errorf("%s\nFails closed, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.open, open); diff != "" {
				t.Errorf("%s\nFails open, -want, +got:\n%s", tc.reason, diff)
			}

			var got map[string][]string

			for _, w := range c.enforcing(enforced) {
				if got == nil {
					got = map[string][]string{}
				}

				got[w.Name] = fixture.Asked(w.Rules)
			}

			if diff := cmp.Diff(tc.enforced, got); diff != "" {
				t.Errorf("%s\nEnforced, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTheWebhookOfAnEnforcementIsWhatItSays(t *testing.T) {
	long := strings.Repeat("a", 250)
	list := fixture.Documents[v1alpha1.Enforcement](t,
		`{metadata: {name: open}, spec: {match: {resourceRules: [{apiGroups: [""], resources: [pods]}], namespaceSelector: {matchLabels: {env: prod}},
			objectSelector: {matchLabels: {a: b}}}, matchConditions: [{name: "our has", expression: "has(object.metadata.labels['a'])"},
			{name: plain, expression: "object.spec.x == 1"}, {name: asks, expression: "request.operation == 'DELETE'"}], validationActions: [Deny], failurePolicy: Ignore}}`,
		`{metadata: {name: `+long+`}, spec: {match: {resourceRules: [{apiGroups: [""], resources: [pods]}]},
			matchConditions: [{name: plain, expression: "object.spec.x == 1"}], validationActions: [Deny]}}`)

	c := Options{
		Namespace: "kausality-system", Manager: "system:serviceaccount:kausality-system:manager",
		Server: Server{
			Service: "kausality-webhook", EnforcePath: "/enforce", CABundle: []byte("ca"), InjectCAFrom: "kausality-system/cert",
			Manager: v1alpha1.ManagerRecord{Version: "v1", Namespace: "kausality-system", Heartbeat: "kausality-webhook"},
		},
	}
	got := c.enforcing(Covered(list, fixture.ServedKinds()))

	ours := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kausality-system", "kube-system"}}
	if diff := cmp.Diff(&metav1.LabelSelector{
		MatchLabels: map[string]string{"env": "prod"}, MatchExpressions: []metav1.LabelSelectorRequirement{ours},
	}, got[0].NamespaceSelector); diff != "" {
		t.Errorf("namespaces, -want, +got:\n%s", diff)
	}

	if *got[0].FailurePolicy != admissionregistrationv1.Ignore || *got[1].FailurePolicy != admissionregistrationv1.Fail {
		t.Error("failure policies are not those of the Enforcements")
	}

	// A condition that the API server cannot evaluate would refuse the request
	// where it fails closed, and one that it cannot compile every configuration.
	conditions := make([]string, 0, 1)
	for _, m := range got[0].MatchConditions[4:] {
		conditions = append(conditions, m.Expression)
	}

	if diff := cmp.Diff([]string{"request.operation == 'DELETE' || [object, oldObject].exists(object, object != null && (object.spec.x == 1))"}, conditions); diff != "" {
		t.Errorf("conditions, -want, +got:\n%s", diff)
	}

	if n := len(got[1].MatchConditions); n != 4 {
		t.Errorf("%d conditions where it fails closed, want ours alone", n)
	}

	if len(got[1].Name) > 253 || !strings.HasSuffix(got[1].Name, ".enforcement.kausality.io") {
		t.Errorf("name %q", got[1].Name)
	}

	meta, err := c.configurationMeta()

	// cert-manager maintains the CA.
	if err != nil || got[0].ClientConfig.CABundle != nil || meta.Annotations["cert-manager.io/inject-ca-from"] != "kausality-system/cert" {
		t.Errorf("client: %+v, metadata: %+v, error: %v", got[0].ClientConfig, meta, err)
	}

	// And who looks the manager up finds it.
	if want := "heartbeat: kausality-webhook\nmaxOpen: 0s\nnamespace: kausality-system\nversion: v1\n"; meta.Annotations[v1alpha1.AnnotationManager] != want {
		t.Errorf("manager %q, want %q", meta.Annotations[v1alpha1.AnnotationManager], want)
	}
}
