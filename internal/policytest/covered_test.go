// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/internal/policytest"
)

// TestCoverageIsWhatTestsHaveTried of each part of the policies.
func TestCoverageIsWhatTestsHaveTried(t *testing.T) {
	const (
		anna     = "Anna may not.\n-- request.yaml --\nuser: {name: anna}\nbase: claim\npolicies: [../policies.yaml]\n-- new.yaml --\nspec: {size: large}\n-- want.yaml --\nallowed: false\n"
		noTicket = "Nobody may without a ticket.\n-- request.yaml --\nuser: {name: hans, groups: [platform-team]}\nbase: claim\npolicies: [../policies.yaml]\n" +
			"-- new.yaml --\nmetadata: {annotations: {ticket: null}}\nspec: {size: large}\n-- want.yaml --\nallowed: false\n"
		neither  = "Anna may not without a ticket.\n-- request.yaml --\nuser: {name: anna}\nbase: claim\npolicies: [../policies.yaml]\n-- new.yaml --\nmetadata: {annotations: {ticket: null}}\nspec: {size: large}\n-- want.yaml --\nallowed: false\n"
		xr       = "Crossplane copies it.\n-- request.yaml --\nbase: xr\nparentAfter: hans\npolicies: [../policies.yaml]\n-- new.yaml --\nspec: {size: large}\n-- want.yaml --\nallowed: true\n"
		instance = "And changes the instance.\n-- request.yaml --\nbase: instance\nparentAfter: xr\npolicies: [../policies.yaml]\n-- new.yaml --\nspec: {class: large}\n-- want.yaml --\nallowed: true\n"
		own      = "Its own are not counted.\n-- request.yaml --\nbase: claim\n-- policies.yaml --\n" + claimPolicy + "-- want.yaml --\noutcome: Unchanged\n"
	)

	hans := edited + "-- want.yaml --\nallowed: true\n"

	cases := map[string]struct {
		reason  string
		more    map[string]string
		percent int
		// want is what is lacking of each item, by its field.
		want map[string]string
	}{
		"nothing": {reason: "Policies in scenarios are not counted.", more: map[string]string{"t/own.txtar": own}, want: map[string]string{}},
		"allowed": {
			reason: "What is allowed is one half.", more: map[string]string{"t/hans.txtar": hans},
			want: map[string]string{
				"claim spec": "never refused", "claim spec.match.fields[0]": "never refused", "claim spec.match.cel[0]": "never refused", "claim spec.subjects[0]": "never refused",
				"xr spec": "neither allowed nor refused", "xr spec.match.fields[0]": "neither allowed nor refused",
			},
		},
		"refused": {
			reason: "A change that the user may not make says nothing of the conditions, which hold.", more: map[string]string{"t/anna.txtar": anna},
			want: map[string]string{
				"claim spec": "never allowed", "claim spec.match.fields[0]": "never allowed", "claim spec.match.cel[0]": "neither allowed nor refused", "claim spec.subjects[0]": "never allowed",
				"xr spec": "neither allowed nor refused", "xr spec.match.fields[0]": "neither allowed nor refused",
			},
		},
		"for two reasons": {
			reason: "One that is refused for two reasons tests neither.", more: map[string]string{"t/neither.txtar": neither},
			want: map[string]string{
				"claim spec": "never allowed", "claim spec.match.fields[0]": "never allowed", "claim spec.match.cel[0]": "neither allowed nor refused", "claim spec.subjects[0]": "neither allowed nor refused",
				"xr spec": "neither allowed nor refused", "xr spec.match.fields[0]": "neither allowed nor refused",
			},
		},
		"a condition": {
			reason: "One that lacks a ticket alone tests the condition.", more: map[string]string{"t/ticket.txtar": noTicket},
			want: map[string]string{
				"claim spec": "never allowed", "claim spec.match.fields[0]": "never allowed", "claim spec.match.cel[0]": "never allowed", "claim spec.subjects[0]": "neither allowed nor refused",
				"xr spec": "neither allowed nor refused", "xr spec.match.fields[0]": "neither allowed nor refused",
			},
		},
		"approvals": {
			reason: "Where a policy asks for approvals, a change that lacks these alone is as one that is allowed.", percent: 66,
			more: map[string]string{
				"policies.yaml": strings.Replace(claimPolicy, "spec:\n", "spec:\n  approval: {required: 2}\n", 1) + "---\n" + xrPolicy,
				"t/hans.txtar":  strings.Replace(hans, "allowed: true", "allowed: false", 1), "t/anna.txtar": anna, "t/ticket.txtar": noTicket,
			},
			want: map[string]string{
				"claim spec": "", "claim spec.match.fields[0]": "", "claim spec.match.cel[0]": "", "claim spec.subjects[0]": "",
				"xr spec": "neither allowed nor refused", "xr spec.match.fields[0]": "neither allowed nor refused",
			},
		},
		"approvals are no refusal": {
			reason: "What lacks approvals alone does not show that the policy refuses anything.",
			more: map[string]string{
				"policies.yaml": strings.Replace(claimPolicy, "spec:\n", "spec:\n  approval: {required: 2}\n", 1) + "---\n" + xrPolicy,
				"t/hans.txtar":  strings.Replace(hans, "allowed: true", "allowed: false", 1),
			},
			want: map[string]string{
				"claim spec": "never refused", "claim spec.match.fields[0]": "never refused", "claim spec.match.cel[0]": "never refused", "claim spec.subjects[0]": "never refused",
				"xr spec": "neither allowed nor refused", "xr spec.match.fields[0]": "neither allowed nor refused",
			},
		},
		"fails": {
			reason: "A test that fails tests nothing.", more: map[string]string{"t/hans.txtar": strings.Replace(hans, "allowed: true", "allowed: false", 1)},
			want: map[string]string{},
		},
		"all": {
			reason: "All of the one, and half of the other, which carries a change on.", percent: 66,
			more: map[string]string{"t/hans.txtar": hans, "t/anna.txtar": anna, "t/ticket.txtar": noTicket, "t/xr.txtar": xr, "t/instance.txtar": instance},
			want: map[string]string{
				"claim spec": "", "claim spec.match.fields[0]": "", "claim spec.match.cel[0]": "", "claim spec.subjects[0]": "", "xr spec": "never refused", "xr spec.match.fields[0]": "never refused",
			},
		},
		"carried on": {
			reason: "What carries on is refused where nobody asked for it.", percent: 83,
			more: map[string]string{
				"t/hans.txtar": hans, "t/anna.txtar": anna, "t/ticket.txtar": noTicket, "t/xr.txtar": xr, "t/instance.txtar": instance,
				"t/unasked.txtar": strings.NewReplacer("hans", "anna", "allowed: true", "allowed: false").Replace(xr),
			},
			want: map[string]string{
				"claim spec": "", "claim spec.match.fields[0]": "", "claim spec.match.cel[0]": "", "claim spec.subjects[0]": "", "xr spec": "never refused", "xr spec.match.fields[0]": "",
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.more["t/base/instance.yaml"] = instanceObject

			results, err := policytest.Run(t.Context(), files(tc.more), []string{"t"}, policytest.Options{Clock: time.Now, Coverage: true})
			if err != nil {
				t.Fatal(err)
			}

			for _, r := range results {
				if r.Err != nil || r.Status != policytest.Passed && name != "fails" {
					t.Errorf("%s: %s: %v, %v", r.Path, r.Status, r.Err, r.Differences)
				}
			}

			got := policytest.CoverageOf(results)
			lacks := map[string]string{}

			for _, p := range got.Policies {
				for _, i := range p.Items {
					lacks[p.Name+" "+i.Field] = i.Lacks()
				}
			}

			if diff := cmp.Diff(tc.want, lacks); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}

			if got.Percent != tc.percent {
				t.Errorf("%s\n%d%%, want %d%%", tc.reason, got.Percent, tc.percent)
			}
		})
	}
}

// TestWhatCarriesAConditionOrASubjectIsCovered of a policy that carries changes on.
func TestWhatCarriesAConditionOrASubjectIsCovered(t *testing.T) {
	const (
		crossplane = "policies: [../policies.yaml, carry.yaml]\n"
		carry      = "apiVersion: kausality.io/v1alpha1\nkind: AllowancePolicy\nmetadata: {name: carry}\nspec:\n  match: {kind: XDatabase, fields: [spec.size], objectSelector: {matchLabels: {a: b}}, cel: [\"object.spec.size != 'huge'\"]}\n" +
			"  subjects: [{kind: ServiceAccount, namespace: crossplane-system, name: crossplane}]\n  allow: [{kind: Instance, mutations: [spec.mode]}]\n"
		xr       = "Crossplane copies it to an XR %.\n-- request.yaml --\nbase: xr\nparentAfter: claim-%\n" + crossplane + "-- old.yaml --\nmetadata: {labels: {a: b}}\n-- new.yaml --\nspec: {size: %}\n-- want.yaml --\nallowed: true\n"
		unlabel  = "An XR without the label.\n-- request.yaml --\nbase: xr\nparentAfter: claim-large\n" + crossplane + "-- new.yaml --\nspec: {size: large}\n-- want.yaml --\nallowed: true\n"
		claim    = "Hans asks for %.\n-- request.yaml --\nuser: {name: hans, groups: [platform-team]}\nbase: claim\n" + crossplane + "-- new.yaml --\nspec: {size: %}\n-- want.yaml --\nallowed: true\n"
		instance = "The instance is changed.\n-- request.yaml --\nbase: instance\nparentAfter: xr-large\n" + crossplane + "-- new.yaml --\nspec: {mode: x}\n-- want.yaml --\nallowed: true\n"
		other    = "Another may not.\n-- request.yaml --\nuser: {name: anna}\nbase: instance\nparentAfter: xr-large\n" + crossplane + "-- new.yaml --\nspec: {mode: x}\n-- want.yaml --\nallowed: false\n"
	)

	more := map[string]string{
		"t/base/instance.yaml": instanceObject, "t/carry.yaml": carry, "t/unlabeled.txtar": unlabel, "t/instance.txtar": instance, "t/other.txtar": other,
	}

	for _, size := range []string{"large", "huge"} {
		more["t/claim-"+size+".txtar"], more["t/xr-"+size+".txtar"] = strings.ReplaceAll(claim, "%", size), strings.ReplaceAll(xr, "%", size)
	}

	results, err := policytest.Run(t.Context(), files(more), []string{"t"}, policytest.Options{Clock: time.Now, Coverage: true})
	if err != nil {
		t.Fatal(err)
	}

	for _, r := range results {
		if r.Status != policytest.Passed {
			t.Errorf("%s: %s: %v, %v", r.Path, r.Status, r.Err, r.Differences)
		}
	}

	got := map[string]string{}

	for _, p := range policytest.CoverageOf(results).Policies {
		if p.Name == "carry" {
			for _, i := range p.Items {
				got[i.Field] = i.Lacks()
			}
		}
	}

	want := map[string]string{
		"spec": "", "spec.match.fields[0]": "never refused", "spec.match.objectSelector": "", "spec.match.cel[0]": "", "spec.subjects[0]": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
