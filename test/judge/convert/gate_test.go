// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestARecordOfAGateMeansTheSame(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is string
	}{
		"Closed": {
			`{kausality.io/management-policies: "- '*'\n", kausality.io/gate: "state: Closed\ngeneration: 3\nconsumed: 2\n"}`,
			`{kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/gate: "v: 1\nstate: Closed\ngeneration: 3\nconsumed: 2\n"}`,
		},
		"Flow": {
			`{kausality.io/management-policies: "[Update, Observe]", kausality.io/gate: "{state: Open, initial: true, actions: [Create], generation: 1}"}`,
			`{kausality.io/desired-policies: '{"v":1,"policies":["Observe","Update"]}', kausality.io/gate: "{v: 1, state: Open, creating: true, actions: [Create], generation: 1}"}`,
		},
		"Unacknowledged": {
			`{kausality.io/gate: "state: Closed\ngeneration: 3\ninitial: true\n"}`,
			`{kausality.io/gate: "v: 1\nstate: Closed\ngeneration: 3\nunacknowledged: true\n"}`,
		},
		"Audit": {
			`{kausality.io/mode: Audit, kausality.io/management-policies: "[]", kausality.io/gate: "state: Ungated\ngeneration: 3\naudit: true\n"}`,
			`{kausality.io/desired-policies: '{"v":1,"policies":[],"mode":"Audit"}', kausality.io/gate: "v: 1\nstate: Ungated\naudit: true\n"}`,
		},
		"Free":   {`{kausality.io/mode: Audit}`, `{kausality.io/desired-policies: '{"v":1,"mode":"Audit"}'}`},
		"Hold":   {`{kausality.io/mode: Hold, kausality.io/management-policies: "['*']"}`, `{kausality.io/desired-policies: '{"v":1,"policies":["*"]}'}`},
		"Broken": {`{kausality.io/management-policies: "{", kausality.io/gate: "{"}`, `{kausality.io/desired-policies: "{", kausality.io/gate: "{"}`},
		"Twice": {
			`{kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/management-policies: "[]", kausality.io/gate: "v: 1\nstate: Open\n"}`,
			`{kausality.io/desired-policies: '{"v":1,"policies":["*"]}', kausality.io/management-policies: "[]", kausality.io/gate: "v: 1\nstate: Open\n"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := annotations(t, tc.was), annotations(t, tc.is)

			object := map[string]any{"metadata": map[string]any{"annotations": got}}
			if err := Gate(object); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object, -want, +got:\n%s", diff)
			}

			text := gates("-- old.yaml --\nmetadata: {annotations: " + tc.was + "}\n")
			if diff := cmp.Diff(map[string]any{"annotations": want}, annotations(t, text[len("-- old.yaml --\n"):])["metadata"]); diff != "" {
				t.Errorf("text, -want, +got:\n%s\n%s", diff, text)
			}
		})
	}

	const people = "-- texts.yaml --\ndenied: 'kausality.io/mode: take it out'\n"
	if got := gates(people); got != people {
		t.Errorf("a text for people became %q", got)
	}

	// What does not mean the same ends the program.
	twice := map[string]any{"metadata": map[string]any{"annotations": annotations(t, `{kausality.io/management-policies: "[Observe, Destroy]"}`)}}
	if err := Gate(twice); err == nil {
		t.Error("an action is lost")
	}
}

func annotations(t *testing.T, text string) map[string]any {
	t.Helper()

	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}

	return out
}
