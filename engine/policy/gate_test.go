// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

const gated = `
metadata: {name: gated}
spec:
  match: {kind: XDatabase, fields: [spec.size]}
  allow: [{relation: External, mutations: [Update]}]
  gate: `

func TestGateSettingsAreChecked(t *testing.T) {
	cases := map[string]struct {
		reason string
		gate   string
		want   []string
	}{
		"All": {
			reason: "All of them may be given.",
			gate:   `{closeWhen: "has(object.status.atProvider['size']) && object.status.atProvider.size == object.spec.forProvider.size", settle: 0s, maxOpen: 10m, whenOverdue: Close}`,
		},
		"Syntax":   {"What does not parse is refused.", `{closeWhen: "object."}`, []string{"spec.gate.closeWhen"}},
		"NotBool":  {"And what gives something else than true or false.", `{closeWhen: "size('a')"}`, []string{"spec.gate.closeWhen"}},
		"OldThing": {"There is no request here: only the managed resource.", `{closeWhen: "oldObject.spec == object.spec"}`, []string{"undeclared reference to 'oldObject'"}},
		"Request":  {"Nor who made it.", `{closeWhen: "request.userInfo.username == 'hans'"}`, []string{"undeclared reference to 'request'"}},
		"Durations": {
			"Durations have bounds.", `{settle: 25h, maxOpen: 10ms}`, []string{"spec.gate.settle", "spec.gate.maxOpen"},
		},
		"Negative": {"And a direction.", `{settle: -1s}`, []string{"spec.gate.settle"}},
		"Overdue":  {"There are two things to do.", `{whenOverdue: Shout}`, []string{"spec.gate.whenOverdue"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := policy.Compile(parse(t, gated+tc.gate))
			if len(errs) != len(tc.want) {
				t.Fatalf("%s\n%v", tc.reason, errs)
			}

			for i, want := range tc.want {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("%s\n%v, want %s", tc.reason, errs[i], want)
				}
			}
		})
	}
}

func TestGateSettingsServeThoughTheRestOfThePolicyDoesNot(t *testing.T) {
	cache := policy.NewCache()

	p := parse(t, gated+"{closeWhen: 'true', settle: 3s, maxOpen: 0s, whenOverdue: Close}")
	p.Spec.Match.Fields = []string{"spec["}

	g := cache.Gate(p)
	if g == nil || g.CloseWhen.String() != "true" || g.Broken != nil || g.MaxOpen != nil {
		t.Fatalf("%+v", g)
	}

	if diff := cmp.Diff(3*time.Second, *g.Settle); diff != "" || g.WhenOverdue != v1alpha1.OverdueClose {
		t.Errorf("%s, %s", diff, g.WhenOverdue)
	}

	p.Spec.Gate.CloseWhen = "object."
	if g := cache.Gate(p); g == nil || g.CloseWhen != nil || g.Broken == nil {
		t.Errorf("%+v", g)
	}

	p.Spec.Gate = nil
	if g := cache.Gate(p); g != nil {
		t.Errorf("%+v", g)
	}
}
