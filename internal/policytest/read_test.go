// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

func TestWhatIsWrongIsNamedWithFileLineAndField(t *testing.T) {
	const ok = "-- want.yaml --\nallowed: true\n"

	cases := map[string]struct {
		scenario string
		more     map[string]string
		want     string
	}{
		"no reason":               {scenario: "-- request.yaml --\nbase: claim\n", want: "t/x.txtar: the comment before the first file has to give a reason, in one line"},
		"two reasons":             {scenario: "One.\nTwo.\n-- request.yaml --\nbase: claim\n", want: "t/x.txtar: the comment before the first file has to give a reason, in one line"},
		"nothing asked":           {scenario: "A.\n-- want.yaml --\nallowed: true\n", want: "t/x.txtar: there has to be one of request.yaml, gate.yaml and upkeep.yaml"},
		"unknown file":            {scenario: edited + ok + "-- wants.yaml --\n", want: "t/x.txtar:10: wants.yaml: no such file belongs to request.yaml: there may be request.yaml, old.yaml, new.yaml, parent.yaml, namespace.yaml, policies.yaml, params.yaml, want.yaml, patched.yaml, texts.yaml"},
		"file of another ask":     {scenario: "A.\n-- gate.yaml --\nbase: claim\n-- new.yaml --\n", want: "t/x.txtar:4: new.yaml: no such file belongs to gate.yaml: there may be gate.yaml, object.yaml, policies.yaml, want.yaml, texts.yaml"},
		"the same file twice":     {scenario: edited + "-- new.yaml --\n" + ok, want: "t/x.txtar:8: new.yaml: it is there twice"},
		"unknown field":           {scenario: "A.\n-- request.yaml --\n# Who asks.\nuser: {name: hans}\nbsae: claim\npolicy: x\n" + ok, want: "t/x.txtar:5: request.yaml: bsae: unknown field\nt/x.txtar:6: request.yaml: policy: unknown field"},
		"unknown field of a user": {scenario: "A.\n-- request.yaml --\nbase: claim\nuser:\n  name: hans\n  group: [a]\n" + ok, want: "t/x.txtar:6: request.yaml: user.group: unknown field"},
		"wrong type":              {scenario: "A.\n-- request.yaml --\nbase: claim\nuser:\n  name: hans\n  groups: a\n" + ok, want: "t/x.txtar:6: request.yaml: user.groups: a value of type string does not belong here"},
		"a key twice":             {scenario: "A.\n-- request.yaml --\nbase: claim\nbase: xr\n" + ok, want: `t/x.txtar:4: request.yaml: key "base" already set in map`},
		"a key of a patch twice":  {scenario: edited + "spec: {size: a}\n" + ok, want: `t/x.txtar:8: new.yaml: key "spec" already set in map`},
		"no YAML":                 {scenario: "A.\n-- request.yaml --\nbase: claim\n-- new.yaml --\na: b: c\n" + ok, want: "t/x.txtar:4: new.yaml: mapping values are not allowed in this context"},
		"unknown operation":       {scenario: "A.\n-- request.yaml --\nbase: claim\noperation: Update\n" + ok, want: `t/x.txtar:4: request.yaml: operation: "Update" is none of CREATE, UPDATE and DELETE`},
		"new object of a deletion": {
			scenario: "A.\n-- request.yaml --\nbase: claim\noperation: DELETE\n-- new.yaml --\n" + ok, want: "t/x.txtar:5: new.yaml: there is none where the operation is DELETE",
		},
		"no base":                  {scenario: "A.\n-- request.yaml --\nbase: claims\n" + ok, want: "t/x.txtar:3: request.yaml: base: cannot read base object: there is no base/claims.yaml in t"},
		"no parent":                {scenario: "A.\n-- request.yaml --\nbase: claim\nparent: ../x.yaml\n" + ok, want: "t/x.txtar:4: request.yaml: parent: cannot read base object: open x.yaml: file does not exist"},
		"no object":                {scenario: "A.\n-- request.yaml --\npolicies: [../policies.yaml]\n-- old.yaml --\nspec: {}\n" + ok, want: "t/x.txtar:4: old.yaml: an object has an apiVersion and a kind: name a base, or give them"},
		"base of several":          {scenario: "A.\n-- request.yaml --\nbase: ../policies.yaml\n" + ok, want: "policies.yaml: there are 2 objects in it, and a base object is one"},
		"base that does not parse": {scenario: "A.\n-- request.yaml --\nbase: x\n" + ok, more: map[string]string{"t/base/x.yaml": "a: 1\nkind: [\n"}, want: "t/base/x.yaml:2: did not find expected node content"},
		"no policies":              {scenario: "A.\n-- request.yaml --\nbase: claim\npolicies:\n- ../policies.yaml\n- ../other.yaml\n" + ok, want: "t/x.txtar:6: request.yaml: policies[1]: cannot read policies: open other.yaml: file does not exist"},
		"no directory":             {scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [../other]\n" + ok, want: "t/x.txtar:4: request.yaml: policies[0]: cannot read policies: open other: file does not exist"},
		"no policy in a file":      {scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [base/xr.yaml]\n" + ok, want: "t/base/xr.yaml: there is no AllowancePolicy, AllowanceBinding, UpgradeAllowance or Enforcement in it"},
		"other kind of ours":       {scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok, more: map[string]string{"t/x.yaml": "apiVersion: kausality.io/v1alpha1\nkind: AllowancePolicies\n"}, want: `t/x.yaml:2: kind: "AllowancePolicies" is none of AllowancePolicy, AllowanceBinding, UpgradeAllowance and Enforcement`},
		"other version of ours":    {scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok, more: map[string]string{"t/x.yaml": "apiVersion: kausality.io/v9\nkind: AllowancePolicy\n"}, want: `t/x.yaml:1: apiVersion: "kausality.io/v9" is not kausality.io/v1alpha1`},
		"document without kind":    {scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok, more: map[string]string{"t/x.yaml": claimPolicy + "---\n# More.\na: b\n"}, want: "t/x.yaml:10: an object has an apiVersion and a kind: name a base, or give them"},
		"the same policy twice":    {scenario: edited + "-- policies.yaml --\n" + claimPolicy + ok, want: `t/x.txtar:9: AllowancePolicy "claim" is in policies.yaml:1, too`},
		"unknown field of a policy": {
			scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok, more: map[string]string{"t/x.yaml": xrPolicy + "---\n" + strings.Replace(claimPolicy, "subjects:", "subject:", 1)},
			want: "t/x.yaml:13: spec.subject: unknown field",
		},
		"a key of a policy twice": {
			scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok, more: map[string]string{"t/x.yaml": xrPolicy + "---\n" + claimPolicy + "kind: A\n"},
			want: `t/x.yaml:15: key "kind" already set in map`,
		},
		"unknown field in a list": {
			scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok,
			more:     map[string]string{"t/x.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n- apiVersion: kausality.io/v1alpha1\n  kind: Enforcement\n  spec: {matches: {}}\n"},
			want:     "t/x.yaml:8: items[1].spec.matches: unknown field",
		},
		"a policy that does not compile": {
			scenario: "A.\n-- request.yaml --\nbase: claim\npolicies: [x.yaml]\n" + ok, more: map[string]string{"t/x.yaml": xrPolicy + "---\n" + strings.Replace(claimPolicy, "has(object", "has(objekt", 1)},
			want: `t/x.yaml:12: cannot use AllowancePolicy "claim": spec.match.cel[0]: Invalid value: "has(objekt.metadata.annotations.ticket)": ` +
				"cannot compile CEL: ERROR: <input>:1:5: undeclared reference to 'objekt' (in container '')\n" +
				" | has(objekt.metadata.annotations.ticket)\n | ....^\n" +
				"it is not in force; want.yaml or texts.yaml has problems, or broken of a gate, where that is what is tested",
		},
		"no resource": {
			scenario: edited + "-- policies.yaml --\nkind: Enforcement\nmetadata: {name: e}\nspec: {match: {resourceRules: [{apiGroups: ['*'], resources: ['*']}]}, validationActions: [Deny]}\n" + ok,
			want:     "t/x.txtar:3: request.yaml: resource: say the plural of the object's kind, for there are Enforcements, which are about resources",
		},
		"parameter without kind":  {scenario: edited + "-- params.yaml --\na: b\n" + ok, want: "t/x.txtar:9: params.yaml: an object has an apiVersion and a kind: name a base, or give them"},
		"unknown field of a want": {scenario: edited + "-- want.yaml --\nallowed: true\nfindings:\n- {verdct: Allowed}\n", want: "t/x.txtar:11: want.yaml: findings[0].verdct: unknown field"},
		"unknown outcome":         {scenario: edited + "-- want.yaml --\noutcome: Refused\n", want: `t/x.txtar:9: want.yaml: outcome: "Refused" is none of ["Allowed","Audited","Denied","Held","Unchanged","Ungoverned","Warned"]`},
		"want of no value":        {scenario: edited + "-- want.yaml --\nallowed:\n", want: "t/x.txtar:9: want.yaml: allowed: it has no value: say what it is to be, or leave it out"},
		"unknown default":         {scenario: edited + ok, more: map[string]string{"t/defaults.yaml": "now: 2026-01-01T00:00:00Z\npolicy: [a]\n"}, want: "t/defaults.yaml:2: policy: unknown field"},
		"duration of a gate":      {scenario: "A.\n-- gate.yaml --\nbase: xr\nsettle: long\n-- want.yaml --\nmove: Stay\n", want: `t/x.txtar:2: gate.yaml: time: invalid duration "long"`},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			more := map[string]string{"t/x.txtar": tc.scenario, "t/fine.txtar": edited + ok}
			maps.Copy(more, tc.more)

			got := run(t, files(more))
			if r := got["t/x"]; r.Status != policytest.Unreadable {
				t.Fatalf("%s: %v", r.Status, r.Differences)
			} else if diff := cmp.Diff(tc.want, r.Err.Error()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			if name != "unknown default" && got["t/fine"].Status != policytest.Passed {
				t.Errorf("the others do not run: %v", got["t/fine"])
			}
		})
	}
}

func TestNamesAreLookedForNearTheScenario(t *testing.T) {
	const (
		head = "Hans may.\n-- request.yaml --\nuser: {name: hans, groups: [platform-team]}\n"
		tail = "-- new.yaml --\nspec: {size: large}\n-- want.yaml --\nallowed: true\n"
		// Nobody may anything.
		other = "apiVersion: kausality.io/v1alpha1\nkind: AllowancePolicy\nmetadata: {name: other}\nspec: {match: {kind: DatabaseClaim, fields: [spec.engine]}, allow: []}\n"
	)

	cases := map[string]map[string]string{
		"a base above":           {"t/a/b/x.txtar": head + "base: claim\npolicies: [../../../policies.yaml]\n" + tail},
		"the nearest base":       {"t/a/b/x.txtar": head + "base: claim\npolicies: [../../../policies.yaml]\n" + tail, "t/a/base/claim.yaml": claimObject, "t/base/claim.yaml": "kind: Broken"},
		"a base by its path":     {"t/x.txtar": head + "base: ../claim.yaml\npolicies: [../policies.yaml]\n" + tail, "claim.yaml": "# Mine.\n---\n" + claimObject},
		"policies in base":       {"t/a/x.txtar": head + "base: claim\npolicies: [all]\n" + tail, "t/base/all.yaml": claimPolicy},
		"no base":                {"t/x.txtar": head + "policies: [../policies.yaml]\n-- old.yaml --\n" + claimObject + tail},
		"a directory":            {"t/x.txtar": head + "base: claim\npolicies: [../all]\n" + tail, "all/a.yml": claimPolicy, "all/b.json": `{"apiVersion": "v1", "kind": "Secret"}`, "all/kustomization.yaml": "resources: [a.yml]", "all/c/d.yaml": "kind: Broken", "all/README.md": "#"},
		"other kinds":            {"t/x.txtar": head + "base: claim\npolicies: [all.yaml]\n" + tail, "t/all.yaml": "apiVersion: v1\nkind: ConfigMap\n---\n" + claimPolicy + "---\n# The end.\n"},
		"a list":                 {"t/x.txtar": head + "base: claim\npolicies: [all.yaml]\n" + tail, "t/all.yaml": list("v1", "List")},
		"a list of ours":         {"t/x.txtar": head + "base: claim\npolicies: [all.yaml]\n" + tail, "t/all.yaml": list("kausality.io/v1alpha1", "AllowancePolicyList")},
		"defaults":               {"t/x.txtar": "Hans may.\n-- request.yaml --\n{}\n" + tail, "t/defaults.yaml": "user: {name: hans, groups: [platform-team]}\nbase: claim\npolicies: [../policies.yaml]\n"},
		"nearer defaults":        {"t/a/x.txtar": "Hans may.\n-- request.yaml --\nbase: claim\n" + tail, "t/defaults.yaml": "user: {name: anna}\npolicies: [base/policies.yaml]\n", "t/a/defaults.yaml": "user: {name: hans, groups: [platform-team]}\n", "t/base/policies.yaml": claimPolicy},
		"its own over defaults":  {"t/x.txtar": head + "base: claim\npolicies: [../policies.yaml]\n" + tail, "t/defaults.yaml": "user: {name: anna}\nbase: none\npolicies: [other.yaml]\n", "t/other.yaml": other},
		"its own empty ones":     {"t/x.txtar": head + "base: claim\npolicies: []\n-- policies.yaml --\n" + claimPolicy + tail, "t/defaults.yaml": "policies: [none.yaml]\n"},
		"another Crossplane":     {"t/x.txtar": "Crossplane is as it is called.\n-- request.yaml --\nbase: claim\npolicies: [p.yaml]\n" + tail, "t/defaults.yaml": "crossplane: system:serviceaccount:upbound-system:crossplane\n", "t/p.yaml": strings.Replace(claimPolicy, "{kind: Group, name: platform-team,", "{kind: ServiceAccount, namespace: upbound-system, name: crossplane,", 1)},
		"hidden directories":     {"t/x.txtar": head + "base: claim\npolicies: [../policies.yaml]\n" + tail, "t/.git/y.txtar": "no scenario"},
		"a policy without group": {"t/x.txtar": head + "base: claim\n-- policies.yaml --\n" + strings.Replace(claimPolicy, "apiVersion: kausality.io/v1alpha1\n", "", 1) + tail},
		"a policy that does not compile, wanted": {
			"t/x.txtar": head + "base: claim\npolicies: [p.yaml]\n-- new.yaml --\nspec: {size: large}\n-- want.yaml --\noutcome: Ungoverned\nproblems:\n" +
				"- 'cannot use AllowancePolicy \"claim\": spec.match.fields[0]: Invalid value: \"spec..size\": not a field path: unexpected ''.'' at position 5'\n",
			"t/p.yaml": strings.Replace(claimPolicy, "[spec.size], cel", "[spec..size], cel", 1),
		},
	}

	for name, more := range cases {
		t.Run(name, func(t *testing.T) { check(t, files(more)) })
	}
}

// list is a list with the Claim's policy.
func list(apiVersion, kind string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(claimPolicy), "\n", "\n  ") + "\n"
}

func TestADirectoryWithoutScenariosIsAnError(t *testing.T) {
	for dir, want := range map[string]string{
		"t":    `cannot test directory "t": there is no scenario in it, and none below it: that is a file *.txtar`,
		"none": `cannot read directory "none": open none: file does not exist`,
	} {
		_, err := policytest.Find(files(nil), dir)
		if err == nil || err.Error() != want || dir == "none" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Find(%q): %v, want %s", dir, err, want)
		}
	}
}

func TestAScenarioIsFoundOnce(t *testing.T) {
	in := files(map[string]string{"t/a/x.txtar": edited, "t/a-b/x.txtar": edited, "t/a/x-y.txtar": edited})

	got, err := policytest.Find(in, "t/a", "t")
	if err != nil {
		t.Fatal(err)
	}

	want := []policytest.Place{{Root: "t", Path: "t/a-b/x.txtar"}, {Root: "t", Path: "t/a/x.txtar"}, {Root: "t", Path: "t/a/x-y.txtar"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Find: -want, +got:\n%s", diff)
	}
}
