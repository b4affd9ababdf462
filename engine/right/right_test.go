// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package right

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// served is what an API server serves.
func served() []Kind {
	return []Kind{
		{Group: "", Kind: "Pod", Resource: "pods"},
		{Group: "", Kind: "Secret", Resource: "secrets"},
		{Group: "apps", Kind: "Deployment", Resource: "deployments"},
		{Group: "apps", Kind: "ReplicaSet", Resource: "replicasets"},
		{Group: "rds.example.org", Kind: "Instance", Resource: "instances", Crossplane: true},
		{Group: "rds.example.org", Kind: "Snapshot", Resource: "snapshots", Crossplane: true},
		{Group: "other.example.org", Kind: "Instance", Resource: "instances"},
		{Group: v1alpha1.Group, Kind: "AllowancePolicy", Resource: "allowancepolicies"},
	}
}

func says(list []Need) []string {
	var out []string

	for _, n := range list {
		for _, r := range n.Rights() {
			out = append(out, r.Verb+" "+r.Resource+"."+r.Group)
		}
	}

	return out
}

func full(resource string) []string {
	return []string{"get " + resource, "list " + resource, "patch " + resource, "watch " + resource}
}

func TestWhatIsGovernedTakesRightsOnItAndOnNothingElse(t *testing.T) {
	allow := func(group, kind string) v1alpha1.Permission { return v1alpha1.Permission{APIGroup: group, Kind: kind} }
	match := func(group, kind string) v1alpha1.Match { return v1alpha1.Match{APIGroup: group, Kind: kind} }

	cases := map[string]struct {
		reason string
		needs  []Need
		want   []string
	}{
		"Policy": {
			reason: "The kind that a policy matches, and those that it allows something of; a Deployment is annotated by its status.",
			needs: OfPolicy(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match: match("apps", "Deployment"), Allow: []v1alpha1.Permission{allow("apps", "ReplicaSet"), allow("gone.example.org", "Nothing")},
			}}, served()),
			want: slices.Concat(full("deployments.apps"), []string{"patch deployments/status.apps"}, full("replicasets.apps")),
		},
		"PolicyWithoutAGroup": {
			reason: "A kind without a group is one of any group.",
			needs:  OfPolicy(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{Match: match("", "Instance")}}, served()),
			want:   slices.Concat(full("instances.other.example.org"), full("instances.rds.example.org")),
		},
		"External": {
			reason: "What is allowed outside names no objects of its own.",
			needs: OfPolicy(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{
				Match: match("rds.example.org", "Instance"), Allow: []v1alpha1.Permission{{Relation: v1alpha1.RelationExternal, Kind: "Secret"}},
			}}, served()),
			want: full("instances.rds.example.org"),
		},
		"OwnKind": {
			reason: "What it takes for our own kinds is standing.",
			needs:  OfPolicy(&v1alpha1.AllowancePolicy{Spec: v1alpha1.AllowancePolicySpec{Match: match(v1alpha1.Group, "AllowancePolicy")}}, served()),
		},
		"Window": {
			reason: "What a window waits for is only read.",
			needs: OfWindow(&v1alpha1.UpgradeAllowance{Spec: v1alpha1.UpgradeAllowanceSpec{
				Allow: []v1alpha1.Permission{allow("", "Secret")}, ActivateWhen: &v1alpha1.ActivateWhen{PodSelector: &v1alpha1.PodSelector{}},
			}}, served()),
			want: slices.Concat([]string{"list pods.", "watch pods."}, full("secrets.")),
		},
		"WindowOfAWorkload": {
			reason: "Workloads are those of the group apps.",
			needs: OfWindow(&v1alpha1.UpgradeAllowance{Spec: v1alpha1.UpgradeAllowanceSpec{
				ActivateWhen: &v1alpha1.ActivateWhen{ControllerRef: &v1alpha1.ControllerRef{Kind: "Deployment"}},
			}}, served()),
			want: []string{"list deployments.apps", "watch deployments.apps"},
		},
		"Enforcement": {
			reason: "All that it covers, but for what it excludes.",
			needs: OfEnforcement(&v1alpha1.Enforcement{Spec: v1alpha1.EnforcementSpec{Match: v1alpha1.EnforcementMatch{
				ResourceRules:        []v1alpha1.ResourceRule{{APIGroups: []string{"apps", v1alpha1.Group}, Resources: []string{"*"}}},
				ExcludeResourceRules: []v1alpha1.ResourceRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}}},
			}}}, served()),
			want: full("replicasets.apps"),
		},
		"Joined": {
			reason: "Each resource is there once, with all that it is needed for.",
			needs: Join(
				[]Need{{GroupResource: schema.GroupResource{Resource: "pods"}, Only: []string{"watch"}}, Governed(Kind{Resource: "secrets"})},
				[]Need{{GroupResource: schema.GroupResource{Resource: "pods"}, Only: []string{"list", "watch"}}, Read(schema.GroupResource{Resource: "secrets"})},
			),
			want: slices.Concat([]string{"list pods.", "watch pods."}, full("secrets.")),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, says(tc.needs)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// granted answers for who has the rights of roles.
func granted(roles []rbacv1.ClusterRole) func(Right) bool {
	has := func(list []string, v string) bool { return slices.Contains(list, "*") || slices.Contains(list, v) }

	return func(r Right) bool {
		return slices.ContainsFunc(roles, func(role rbacv1.ClusterRole) bool {
			return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return has(rule.APIGroups, r.Group) && has(rule.Resources, r.Resource) && has(rule.Verbs, r.Verb)
			})
		})
	}
}

func nothing(Right) bool { return false }

// TestTheRolesGiveWhatIsMissing for any set of needs, and applied later for others
// they take away nothing.
func TestTheRolesGiveWhatIsMissing(t *testing.T) {
	needs := make([]Need, 0, len(served()))

	for i, k := range served() {
		n := Governed(k)
		if i == 0 {
			n.Only = []string{list, watch}
		}

		needs = append(needs, n)
	}

	for subset := range 1 << len(needs) {
		var some []Need

		for i := range needs {
			if subset&(1<<i) != 0 {
				some = append(some, needs[i])
			}
		}

		roles := Roles(Missing(some, nothing), served())
		if left := Missing(some, granted(roles)); len(left) > 0 {
			t.Fatalf("after the roles for %v: %s", some, Message(left, message.Most))
		}

		for _, r := range roles {
			for _, rule := range r.Rules {
				if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "*") && rule.APIGroups[0] != "rds.example.org" {
					t.Errorf("%s is about %v of %v", r.GetName(), rule.Resources, rule.APIGroups)
				}
			}
		}
	}
}

func TestARoleThatIsAppliedAgainTakesNothingAway(t *testing.T) {
	// Of Secrets only patch is missing, as somebody else has given the rest.
	secrets := []Need{Governed(Kind{Resource: "secrets"})}
	reads := func(r Right) bool { return r.Verb != patch }

	// The other one is about the same role, when it gave all.
	before, after := Roles(Missing(secrets, nothing), nil), Roles(Missing(secrets, reads), nil)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("-for all, +for what is missing:\n%s", diff)
	}

	// What is read only has one of its own.
	pods := Roles(Missing([]Need{Read(schema.GroupResource{Resource: "secrets"})}, nothing), nil)
	if pods[0].GetName() == before[0].GetName() {
		t.Errorf("both roles are called %s", pods[0].GetName())
	}
}

func TestAMessageNamesRightsResourcesAndTheCommand(t *testing.T) {
	gr := schema.ParseGroupResource

	for name, tc := range map[string]struct {
		needs []Need
		may   func(Right) bool
		want  string
	}{
		"Nothing": {may: nothing},
		"All": {
			needs: []Need{Governed(Kind{Group: "apps", Resource: "deployments"}), Governed(Kind{Resource: "secrets"})}, may: nothing,
			want: "the manager may not get, list, patch and watch deployments.apps, secrets; patch deployments.apps/status. " + Remedy,
		},
		"One": {
			needs: []Need{Governed(Kind{Group: "rds.example.org", Resource: "instances"})}, may: func(r Right) bool { return r.Verb != patch },
			want: "the manager may not patch instances.rds.example.org. " + Remedy,
		},
		"Conditions": {
			needs: []Need{Governed(Kind{Group: "example.org", Resource: "databases", Crossplane: true, Conditions: true})},
			may:   func(r Right) bool { return r.Resource == "databases" },
			want:  "the manager may not patch databases.example.org/status. " + Remedy,
		},
		"Many": {
			needs: []Need{Read(gr("a.a")), Read(gr("b.a")), Read(gr("c.a")), Read(gr("d.a")), Read(gr("e.a")), Read(gr("f.a")), Read(gr("g.a"))},
			may:   nothing,
			want:  "the manager may not get, list and watch a.a, b.a, c.a, d.a, e.a, f.a, g.a. " + Remedy,
		},
		"More than fit": {
			needs: []Need{
				Read(gr("a.rds.example.org")), Governed(Kind{Group: "rds.example.org", Resource: "b"}), Read(gr("c.rds.example.org")),
				Governed(Kind{Group: "rds.example.org", Resource: "instances"}), Governed(Kind{Group: "rds.example.org", Resource: "snapshots"}),
			},
			may: nothing,
			want: "the manager may not get, list and watch a.rds.example.org, c.rds.example.org; " +
				"get, list, patch and watch b.rds.example.org and 2 more. " + Remedy,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Message(Missing(tc.needs, tc.may), message.Most)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			if n := utf8.RuneCountInString(got); n > message.Most {
				t.Errorf("%d characters", n)
			}
		})
	}
}

func TestOnlyTheLacksOfAPolicyAreSaidOfIt(t *testing.T) {
	secrets, pods := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "pods"}
	all := Missing([]Need{Governed(Kind{Resource: "secrets"}), Governed(Kind{Resource: "pods"})}, nothing)

	got := Of(all, []Need{Read(pods), Governed(Kind{Resource: "configmaps"})})
	if len(got) != 1 || got[0].String() != "get, list and watch pods" {
		t.Errorf("Of: %v", got)
	}

	if !Has(all, pods) || Has(got, secrets) {
		t.Error("Has: it does not tell them apart")
	}
}
