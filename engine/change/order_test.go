// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/change"
)

func TestTheOrderOfAListIsAChangeOfTheList(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, obj string
		// changes are the fields that change; want is what is left when hold is held.
		changes []string
		hold    string
		want    string
	}{
		"Reordered": {
			reason: "The elements are the same, and their order is not.",
			old:    "{l: [{name: a, v: 1}, {name: b, v: 2}]}", obj: "{l: [{name: b, v: 2}, {name: a, v: 1}]}",
			changes: []string{"l"}, hold: "l", want: "{l: [{name: a, v: 1}, {name: b, v: 2}]}",
		},
		"WithANewElement": {
			reason: "Held is the order of those that were there; a new one keeps its place.",
			old:    "{l: [{name: a}, {name: b}, {name: c}]}", obj: "{l: [{name: c}, {name: new}, {name: a}, {name: b}]}",
			changes: []string{"l", "l[1].name"}, hold: "l", want: "{l: [{name: a}, {name: new}, {name: b}, {name: c}]}",
		},
		"WithAChange": {
			reason: "What changes in an element goes with it.",
			old:    "{l: [{name: a, v: 1}, {name: b, v: 2}]}", obj: "{l: [{name: b, v: 9}, {name: a, v: 1}]}",
			changes: []string{"l", "l[0].v"}, hold: "l", want: "{l: [{name: a, v: 1}, {name: b, v: 9}]}",
		},
		"Inserted": {
			reason: "Who makes room for another keeps the order.",
			old:    "{l: [{name: a}, {name: b}]}", obj: "{l: [{name: new}, {name: a}, {name: b}]}",
			changes: []string{"l[0].name"}, hold: "l[0].name", want: "{l: [{name: a}, {name: b}]}",
		},
		"Removed": {
			reason: "So does who moves up.",
			old:    "{l: [{name: a}, {name: b}, {name: c}]}", obj: "{l: [{name: b}, {name: c}]}",
			changes: []string{"l[0].name"}, hold: "l[0].name", want: "{l: [{name: a}, {name: b}, {name: c}]}",
		},
		"InitContainers": {
			reason: "Init containers run in their order.",
			old:    "{spec: {initContainers: [{name: a}, {name: b}]}}", obj: "{spec: {initContainers: [{name: b}, {name: a}]}}",
			changes: []string{"spec.initContainers"}, hold: "spec.initContainers", want: "{spec: {initContainers: [{name: a}, {name: b}]}}",
		},
		"Environment": {
			reason: "A variable may refer to those before it.",
			old:    "{spec: {containers: [{name: c, env: [{name: a}, {name: b}]}]}}", obj: "{spec: {containers: [{name: c, env: [{name: b}, {name: a}]}]}}",
			changes: []string{"spec.containers[0].env"}, hold: "spec.containers[0].env",
			want: "{spec: {containers: [{name: c, env: [{name: a}, {name: b}]}]}}",
		},
		"Containers": {
			reason:  "Where containers run side by side their order still makes new pods of a Deployment.",
			old:     "{spec: {containers: [{name: a}, {name: b}], volumes: [{name: v}, {name: w}]}}",
			obj:     "{spec: {containers: [{name: b}, {name: a}], volumes: [{name: w}, {name: v}]}}",
			changes: []string{"spec.containers", "spec.volumes"}, hold: "spec.containers",
			want: "{spec: {containers: [{name: a}, {name: b}], volumes: [{name: w}, {name: v}]}}",
		},
		"OtherContainers": {
			reason: "What is called so elsewhere may be anything.",
			old:    "{containers: [{name: a}, {name: b}]}", obj: "{containers: [{name: b}, {name: a}]}",
			changes: []string{"containers"}, hold: "containers", want: "{containers: [{name: a}, {name: b}]}",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string //nolint:prealloc // Nil when nothing changes.
			for _, c := range change.Between(decode(t, tc.old), decode(t, tc.obj)) {
				got = append(got, c.Field)
			}

			if !slices.Equal(got, tc.changes) {
				t.Errorf("%s\nBetween: %v, want %v", tc.reason, got, tc.changes)
			}

			left := change.Merge(decode(t, tc.old), decode(t, tc.obj), func(c change.Change) bool { return c.Field == tc.hold })
			if diff := cmp.Diff(decode(t, tc.want), left); diff != "" {
				t.Errorf("%s\nMerge, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnIndexIsThePlaceOfAnElementThatStaysThere(t *testing.T) {
	const old = "{l: [{name: a, v: 1}, {name: b, v: 2}]}"

	cases := map[string]struct {
		reason string
		obj    string
		field  string
		want   bool
	}{
		"Stays":     {reason: "It stands there before and after.", obj: "{l: [{name: a, v: 9}, {name: b, v: 2}]}", field: "l[0].v", want: true},
		"MovedUp":   {reason: "Another one was moved there.", obj: "{l: [{name: b, v: 9}, {name: a, v: 1}]}", field: "l[0].v"},
		"MovedDown": {reason: "It was pushed aside.", obj: "{l: [{name: new}, {name: a, v: 9}, {name: b, v: 2}]}", field: "l[1].v"},
		"Pushes":    {reason: "A new one pushed it aside.", obj: "{l: [{name: new}, {name: a, v: 1}, {name: b, v: 2}]}", field: "l[0].name"},
		"Replaced":  {reason: "A new one stands for the one that is gone.", obj: "{l: [{name: new}, {name: b, v: 2}]}", field: "l[0].name", want: true},
		"Appended":  {reason: "Nobody stood there.", obj: "{l: [{name: a, v: 1}, {name: b, v: 2}, {name: new}]}", field: "l[2].name", want: true},
		"Gone":      {reason: "It is taken away.", obj: "{l: [{name: b, v: 2}]}", field: "l[0].v", want: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changes := change.Between(decode(t, old), decode(t, tc.obj))

			i := slices.IndexFunc(changes, func(c change.Change) bool { return c.Field == tc.field })
			if i < 0 {
				t.Fatalf("no change of %s", tc.field)
			}

			pattern, err := change.ParsePattern(tc.field)
			if err != nil {
				t.Fatal(err)
			}

			if got := changes[i].CoveredBy(tc.field); got != tc.want {
				t.Errorf("%s\nCoveredBy: %v", tc.reason, got)
			}

			if got := pattern.CoversChange(changes[i]); got != tc.want {
				t.Errorf("%s\nCoversChange: %v", tc.reason, got)
			}

			if !changes[i].CoveredBy("l[*]") {
				t.Errorf("%s\na wildcard does not cover it", tc.reason)
			}
		})
	}
}
