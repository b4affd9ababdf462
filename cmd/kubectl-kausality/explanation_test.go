// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// asked is the request of a scenario of the corpus.
func asked(t *testing.T, name string) request.Request {
	t.Helper()

	sources, err := corpus.Sources()
	if err != nil {
		t.Fatal(err)
	}

	s, err := corpus.Parse(name, sources[name])
	if err != nil {
		t.Fatal(err)
	}

	req, bad := s.Decision()
	if len(bad) > 0 {
		t.Fatal(bad)
	}

	return req
}

const boundExplanation = `Widget default/w (example.org/v1, generation 3), changed by hans@example.com
It has no parent: it is a root.

spec.color: allowed by colors (rule Initiate)

In the order in which it is tried:

UpgradeAllowances: none

AllowancePolicies about Widget:
- colors
  fields: spec.color
  spec.paramRef: Palette "platform/default": holds
  spec.match.cel[0]: object.spec.color in params.spec.colors (with Palette "platform/default"): holds
  AllowanceBinding default/devs: holds
  spec.paramRef: Palette "default/devs": holds
  spec.paramRef: object.spec.color in params.spec.colors (with Palette "default/devs"): holds
  may initiate: User anna@example.com, Group devs (AllowanceBinding default/devs) (this user)
  AllowanceBindings: optional
  may carry it on: anybody
  then may follow: ConfigMap data

Enforcements: none

A change that nothing allows is saved with a warning, and not applied.
`

const composedExplanation = `RDSInstance my-database-xyz-rds (rds.aws.upbound.io/v1beta1, generation 7), changed by dora@example.com
Its parent is XDatabase my-database-xyz.

spec.forProvider.instanceClass: not allowed (Deny)
- policy "xdatabase-to-rds" allows it only after an allowed change of spec.size

In the order in which it is tried:

Allowances of its parent: none
  These policies give one:
  - xdatabase-to-rds, for spec.size

UpgradeAllowances:
- crossplane-upgrade-2024-01-06, 2024-01-06T15:00:00Z to 2024-01-06T18:00:00Z, for system:serviceaccount:crossplane-system:crossplane: does not serve, it is over

AllowancePolicies about RDSInstance: none

Phase of its parent: Steady: it allows nothing by itself

Enforcements:
- databases: governs it; Deny, failurePolicy Fail
  exception migration until 2024-12-31T00:00:00Z (INFRA-7): does not serve, it is over

A change that nothing allows is refused (Deny).
`

const approvalExplanation = `Widget default/w (example.org/v1, generation 3), changed by hans@example.com
It has no parent: it is a root.

spec.color: not allowed: it would be saved with a warning, and not applied
- policy "widgets": needs the approval of 2 other people: kubectl kausality approve Widget.example.org/w -n default

In the order in which it is tried:

UpgradeAllowances: none

AllowancePolicies about Widget:
- widgets
  fields: spec (covers spec.color)
  may initiate: Group platform-team (this user)
  then 2 other people have to approve what follows
  may carry it on: anybody
  then may follow: ConfigMap data

Enforcements: none

A change that nothing allows is saved with a warning, and not applied.
`

// TestAnExplanationShowsWhatIsTriedInOrder and what comes of it.
func TestAnExplanationShowsWhatIsTriedInOrder(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{"policy/param-binding": boundExplanation, "exception/expired": composedExplanation, "policy/approval-alone": approvalExplanation} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc, err := explanationOf(asked(t, name), nil)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(want, doc.render()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAnExplanationOfAFieldIsAboutThatFieldAlone where nothing of the object changes, and
// says what would be decided.
func TestAnExplanationOfAFieldIsAboutThatFieldAlone(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		field    string
		verdict  string
		policies []string
	}{
		"Named":   {"spec.color", "Allowed", []string{"colors"}},
		"Unnamed": {"spec.size", "Unallowed", []string{}},
		"Delete":  {"delete", "Unallowed", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			req := asked(t, "policy/param-binding")
			req.Old = req.New.DeepCopy()

			doc, err := explanationOf(req, []string{tc.field})
			if err != nil {
				t.Fatal(err)
			}

			got := each(doc.Policies, func(p explainedPolicy) string { return p.Name })
			if len(doc.Changes) != 1 || doc.Changes[0].Field != tc.field || doc.Changes[0].Verdict != tc.verdict || !cmp.Equal(got, tc.policies) {
				t.Errorf("changes %+v, policies %v", doc.Changes, got)
			}
		})
	}
}

// TestAnExplanationIsAboutTheValuesThatFieldsAreToGet where there are some.
func TestAnExplanationIsAboutTheValuesThatFieldsAreToGet(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		args  []string
		want  []verdictEntry
		limit string
	}{
		"Value":    {[]string{"spec.color=blue"}, []verdictEntry{{Field: "spec.color", Verdict: "Unallowed"}}, "NotMet"},
		"Another":  {[]string{"spec.color=green"}, []verdictEntry{{Field: "spec.color", Verdict: "Allowed"}}, "Met"},
		"NoValue":  {[]string{"spec.color"}, []verdictEntry{{Field: "spec.color", Verdict: "Allowed"}}, "Met"},
		"TheSame":  {[]string{"spec.color=red"}, []verdictEntry{{Field: "spec.color", Verdict: "Allowed"}}, "Met"},
		"AndOther": {[]string{"spec.color=blue", "spec.size"}, []verdictEntry{{Field: "spec.color", Verdict: "Unallowed"}, {Field: "spec.size", Verdict: "Unallowed"}}, "NotMet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			req := asked(t, "policy/shadow-condition-beside")
			if err := unstructured.SetNestedField(req.New.Object, "red", "spec", "color"); err != nil {
				t.Fatal(err)
			}

			req.Old = req.New.DeepCopy()

			values, fields, err := askedValues(tc.args)
			if err != nil {
				t.Fatal(err)
			}

			if err := values.set(req.New); err != nil {
				t.Fatal(err)
			}

			doc, err := explanationOf(req, fields)
			if err != nil {
				t.Fatal(err)
			}

			got := each(doc.Changes, func(e verdictEntry) verdictEntry { return verdictEntry{Field: e.Field, Verdict: e.Verdict} })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}

			i := slices.IndexFunc(doc.Policies[0].Conditions, func(r policy.Result) bool { return strings.Contains(r.Text, "'blue'") })
			if i < 0 || string(doc.Policies[0].Conditions[i].Outcome) != tc.limit {
				t.Errorf("conditions %+v, want %s", doc.Policies[0].Conditions, tc.limit)
			}
		})
	}

	for _, arg := range []string{"spec.size=[a", "spec..size=a"} {
		values, _, err := askedValues([]string{arg})
		if err == nil {
			err = values.set(&unstructured.Unstructured{Object: map[string]any{}})
		}

		if exitCode(err) != exitUsage {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// TestWhatCanIsAskedIsAnsweredWithWhatFollows and with what is missing, for people and for
// programs.
func TestWhatCanIsAskedIsAnsweredWithWhatFollows(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		scenario, want string
		err            error
	}{
		"Allowed": {
			scenario: "policy/param-binding",
			want:     "Widget default/w, changed by hans@example.com:\n- spec.color: allowed by colors (rule Initiate)\nThen may follow:\n- ConfigMap data\n",
		},
		"Missing": {
			scenario: "policy/shadow-condition-beside",
			want: "Widget default/w, changed by hans@example.com:\n" +
				"- spec.color: not allowed: it would be saved with a warning, and not applied\n" +
				"  - policy \"colors\": condition \"no-blue\": CEL \"object.spec.color != 'blue'\" is false\n",
			err: errNotAllowed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc, err := verdictOf(asked(t, tc.scenario), nil)
			if err != nil {
				t.Fatal(err)
			}

			var text, structured bytes.Buffer
			if err := printVerdicts(&text, outputOptions{}, doc); !errors.Is(err, tc.err) || text.String() != tc.want {
				t.Errorf("error %v, text, -want +got:\n%s", err, cmp.Diff(tc.want, text.String()))
			}

			got := verdictDocument{}
			if err := printVerdicts(&structured, outputOptions{format: formatJSON}, doc); !errors.Is(err, tc.err) ||
				json.Unmarshal(structured.Bytes(), &got) != nil || got.Allowed != (tc.err == nil) || got.Kind != "Verdict" {
				t.Errorf("error %v, document %s", err, structured.String())
			}
		})
	}
}

// TestFieldsAreReadAsTheyAreGiven with their values, which are YAML.
func TestFieldsAreReadAsTheyAreGiven(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		args []string
		want map[string]any
		err  bool
	}{
		"Values": {
			args: []string{"spec.size=large", "spec.replicas=3", "spec.tags={a: b}", "metadata.labels[team.example.org/x]=y=z"},
			want: map[string]any{
				"spec":     map[string]any{"size": "large", "replicas": int64(3), "tags": map[string]any{"a": "b"}, "engine": "postgres"},
				"metadata": map[string]any{"labels": map[string]any{"team.example.org/x": "y=z"}},
			},
		},
		"Removal":       {args: []string{"spec.engine="}, want: map[string]any{"spec": map[string]any{}}},
		"RemovalOfNone": {args: []string{"spec.none=null"}, want: map[string]any{"spec": map[string]any{"engine": "postgres"}}},
		"NoValue":       {args: []string{"spec.size"}, want: map[string]any{"spec": map[string]any{"engine": "postgres"}}},
		"NoYAML":        {args: []string{"spec.size=[a"}, err: true},
		"NoPath":        {args: []string{"spec..size=a"}, err: true},
		"DeleteAndMore": {args: []string{"delete", "spec.size=a"}, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"engine": "postgres"}}}

			fields, err := parseFields(tc.args)
			if err == nil {
				err = fields.set(u)
			}

			if (err != nil) != tc.err || tc.err && exitCode(err) != exitUsage {
				t.Fatalf("error %v, want one %t", err, tc.err)
			}

			if diff := cmp.Diff(tc.want, u.Object); !tc.err && diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAManifestChangesTheFieldsItNames and no others.
func TestAManifestChangesTheFieldsItNames(t *testing.T) {
	t.Parallel()

	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(2)},
	}}

	from := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a", "uid": "u"}, "spec": map[string]any{"size": int64(1), "engine": "x"},
	}}

	got, err := merged(from, manifest)
	if err != nil {
		t.Fatal(err)
	}

	want := from.DeepCopy()
	_ = unstructured.SetNestedField(want.Object, int64(2), "spec", "size")

	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
