// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// object decodes YAML the way the API server decodes JSON.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}

	u.Object, _ = fixture.Decoded(u.Object).(map[string]any)

	return u
}

func carrying(key, value string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAnnotations(map[string]string{key: value})

	return u
}

// full has every field set, with text where text is free.
func full(text string) []v1alpha1.Allowance {
	hop := v1alpha1.Hop{
		Kind: "DatabaseClaim", Name: text, Generation: 5, Field: "spec.containers[0].image",
		Attestations: map[string]string{"metadata.annotations[jira]": text, "spec.b": text, text: "as a key"},
	}

	return []v1alpha1.Allowance{
		{
			APIGroup: "example.org", Kind: "XDatabase", Relation: v1alpha1.RelationChild, Mutation: "spec.size",
			Generation: 5, ID: "5.2", Initiator: text, Policy: text, Trace: []v1alpha1.Hop{hop, hop, {Kind: "A", Namespace: &text}},
			Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: text, Field: text},
		},
		{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update", text}, Generation: 6, ID: "6.0", Initiator: "a", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceDeletion, From: "5.0"}, Trace: []v1alpha1.Hop{{Kind: text}}},
	}
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	for name, text := range map[string]string{
		"Plain": "hans@example.com", "Empty": "", "Space": " ", "Spaces": " a ", "Colon": "a: b", "Hash": "a #b",
		"True": "true", "Yes": "yes", "No": "no", "On": "on", "Off": "OFF", "Y": "y", "N": "N", "Null": "null", "Tilde": "~",
		"Int": "42", "Octal": "0755", "Float": "1e3", "Date": "2026-01-01", "Sexagesimal": "12:30:45", "Underscore": "1_000", "Inf": ".inf",
		"Dash": "- a", "Star": "*a", "Amp": "&a", "Bang": "!a", "Percent": "%a", "At": "@a", "Backtick": "`a", "Brace": "{a: b}", "Bracket": "[*]",
		"Quote": `a "b" 'c' \d`, "Newline": "a\nb", "LastNewline": "a\nb\n", "Indented": "  a\n b\n\n", "CR": "a\r\nb", "Tab": "\ta\tb",
		"Unicode": "Grüße \u4e16 \U0001F600", "Control": "a\x01b\x1b", "Delete": "a\x7fb", "C1": "a\u0085b\u009fc", "BOM": "\ufeffa", "Separators": "a\u2028b\u2029c",
		"NonCharacter": "a\ufffeb\uffff", "Merge": "<<", "Equals": "=", "HTML": "<a href='b'>&amp;</a>", "Documents": "---\na\n...\n", "Question": "? a",
		"Long": strings.Repeat("word ", 200), "Wide": strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			want := full(text)
			value := allowance.FormatList(want)

			got, err := allowance.Parse(carrying(v1alpha1.AnnotationAllowances, value))
			if err != nil {
				t.Fatalf("Parse of\n%s\n%v", value, err)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Parse of\n%s\n-want, +got:\n%s", value, diff)
			}

			if again := allowance.FormatList(got); again != value {
				t.Errorf("written again, -first, +again:\n%s", cmp.Diff(value, again))
			}
		})
	}
}

func FuzzWhatIsWrittenReadsTheSame(f *testing.F) {
	f.Add("yes")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		want := full(text)

		got, err := allowance.Parse(carrying(v1alpha1.AnnotationAllowances, allowance.FormatList(want)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n-want, +got:\n%s", text, err, diff)
		}
	})
}

func TestTheFormIsTheReferences(t *testing.T) {
	list := []v1alpha1.Allowance{{
		Kind: "ReplicaSet", Mutation: "spec.replicas", Generation: 7, ID: "7.0", Initiator: "hans@example.com", Policy: "foo",
		Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: "foo", Field: "spec.replicas"},
		Trace: []v1alpha1.Hop{{
			Kind: "Deployment", Name: "foo", Generation: 7, Field: "spec.replicas",
			Attestations: map[string]string{"metadata.annotations[jira]": "INFRA-23232", "metadata.annotations[approved-by]": "alice@example.com"},
		}},
	}}
	want := `- kind: ReplicaSet
  mutation: spec.replicas
  generation: 7
  id: "7.0"
  initiator: hans@example.com
  policy: foo
  source:
    type: Policy
    name: foo
    field: spec.replicas
  trace:
  - kind: Deployment
    name: foo
    generation: 7
    field: spec.replicas
    attestations:
      metadata.annotations[approved-by]: alice@example.com
      metadata.annotations[jira]: INFRA-23232
`

	for range 10 {
		if diff := cmp.Diff(want, allowance.FormatList(list)); diff != "" {
			t.Fatalf("FormatList, -want, +got:\n%s", diff)
		}
	}

	if got := allowance.FormatList[v1alpha1.Allowance](nil); got != allowance.None {
		t.Errorf("FormatList of nothing: %q", got)
	}
}

func TestYAMLAndJSONAreRead(t *testing.T) {
	want := []v1alpha1.Allowance{{Kind: "Pod", Mutation: "delete", Generation: 14, ID: "14.0", Initiator: "hans", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy}}}

	cases := map[string]struct {
		reason, text string
		want         []v1alpha1.Allowance
		err          bool
	}{
		"Block":   {reason: "As we write it.", text: "- kind: Pod\n  mutation: delete\n  generation: 14\n  id: \"14.0\"\n  initiator: hans\n  source:\n    type: Policy\n", want: want},
		"Comment": {reason: "As a person writes it.", text: "- kind: Pod  # child\n  mutation: delete\n  source: {type: Policy}\n  id: '14.0'\n  initiator: hans\n  generation: 14\n", want: want},
		"JSON":    {reason: "As a program writes it.", text: `[{"kind":"Pod","mutation":"delete","generation":14,"initiator":"hans","id":"14.0","source":{"type":"Policy"}}]`, want: want},
		"Later": {
			reason: "A field of a later version is no reason to lose all.", text: `[{"kind":"Pod","mutation":"delete","generation":14,"initiator":"hans","new":1,"id":"14.0","source":{"type":"Policy"}}]`,
			want: []v1alpha1.Allowance{{
				Kind: "Pod", Mutation: "delete", Generation: 14, ID: "14.0", Initiator: "hans", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy},
				Unknown: v1alpha1.Unknown{"new": []byte("1")},
			}},
		},
		"None":    {reason: "None left.", text: "[]\n", want: []v1alpha1.Allowance{}},
		"Nothing": {reason: "The empty annotation is none."},
		"Null":    {reason: "So is null.", text: "null"},
		"Text":    {reason: "A text is no list.", text: "hans", err: true},
		"Map":     {reason: "Nor is a map.", text: "kind: Pod", err: true},
		"Broken":  {reason: "Broken YAML is an error.", text: "- kind: [", err: true},
		"Type":    {reason: "So is a wrong type.", text: "- generation: many", err: true},
		"Former":  {reason: "What does not say what gave it allows nothing.", text: "- {kind: Pod, mutation: delete, generation: 14, initiator: hans, policy: p}", err: true},
		"Source":  {reason: "Nor does what says it in a way of a later version.", text: "- {kind: Pod, mutation: delete, generation: 14, id: '14.0', initiator: hans, source: {type: Moon}}", err: true},
		"Within":  {reason: "Or in more words.", text: "- {kind: Pod, mutation: delete, generation: 14, id: '14.0', initiator: hans, source: {type: Policy, unless: a}}", err: true},
		"ID":      {reason: "The ID is of the generation.", text: "- {kind: Pod, mutation: delete, generation: 14, id: '13.0', initiator: hans, source: {type: Policy}}", err: true},
		"Number":  {reason: "And no number.", text: "- {kind: Pod, mutation: delete, generation: 14, id: 14.0, initiator: hans, source: {type: Policy}}", err: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := allowance.Parse(carrying(v1alpha1.AnnotationAllowances, tc.text))
			if (err != nil) != tc.err {
				t.Fatalf("%s\nParse: %v", tc.reason, err)
			}

			if err != nil && !strings.Contains(err.Error(), `cannot parse annotation "kausality.io/allowances"`) {
				t.Errorf("%s\nParse: %v does not name the annotation", tc.reason, err)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nParse, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAGateRecordReadsTheSame(t *testing.T) {
	if rec, err := allowance.ParseGate(&unstructured.Unstructured{Object: map[string]any{}}); rec != nil || err != nil {
		t.Errorf("ParseGate of nothing: %v, %v", rec, err)
	}

	text := "v: 1\nstate: Open\nactions:\n- Update\ngeneration: 9\nsince: \"2026-01-01T00:00:00Z\"\nconsumed: 3\nallowances:\n- kind: a\n  generation: 1\n  id: \"1.0\"\n  initiator: b\n  source:\n    type: Window\n    name: w\n"

	rec, err := allowance.ParseGate(carrying(v1alpha1.AnnotationGate, text))
	if err != nil {
		t.Fatal(err)
	}

	got, err := allowance.Format(rec)
	if diff := cmp.Diff(text, got); err != nil || diff != "" {
		t.Errorf("Format: %v, -want, +got:\n%s", err, diff)
	}

	if _, err := allowance.ParseGate(carrying(v1alpha1.AnnotationGate, "- a")); err == nil || !strings.Contains(err.Error(), "kausality.io/gate") {
		t.Errorf("ParseGate of a list: %v", err)
	}
}

func TestANewerAllowanceReplacesTheOlderOneOfTheSame(t *testing.T) {
	source := func(policy string) v1alpha1.AllowanceSource {
		return v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Name: policy}
	}
	child := func(group, kind, mutation, policy string, generation int64) v1alpha1.Allowance {
		return v1alpha1.Allowance{APIGroup: group, Kind: kind, Mutation: mutation, Source: source(policy), Generation: generation}
	}
	external := func(policy string, generation int64, mutations ...string) v1alpha1.Allowance {
		return v1alpha1.Allowance{Relation: v1alpha1.RelationExternal, Mutations: mutations, Source: source(policy), Generation: generation}
	}

	type list = []v1alpha1.Allowance

	cases := map[string]struct {
		reason          string
		have, add, want list
	}{
		"Newer":    {"It takes the older one's place.", list{child("", "A", "x", "p", 1), child("", "B", "x", "p", 1)}, list{child("", "A", "x", "q", 2)}, list{child("", "A", "x", "q", 2), child("", "B", "x", "p", 1)}},
		"Older":    {"An older one changes nothing.", list{child("", "A", "x", "p", 2)}, list{child("", "A", "x", "q", 1)}, list{child("", "A", "x", "p", 2)}},
		"Same":     {"Of one generation and policy the first stays.", list{child("", "A", "x", "p", 2)}, list{child("", "A", "x", "p", 2)}, list{child("", "A", "x", "p", 2)}},
		"Policy":   {"Another policy's of the same generation stands beside it.", list{child("", "A", "x", "p", 2)}, list{child("", "A", "x", "q", 2)}, list{child("", "A", "x", "p", 2), child("", "A", "x", "q", 2)}},
		"All":      {"It takes the place of all older ones.", list{child("", "A", "x", "p", 1), child("", "B", "x", "p", 1), child("", "A", "x", "q", 1)}, list{child("", "A", "x", "r", 2)}, list{child("", "A", "x", "r", 2), child("", "B", "x", "p", 1)}},
		"Mutation": {"Another mutation stands beside it.", list{child("", "A", "x", "p", 1)}, list{child("", "A", "y", "p", 2)}, list{child("", "A", "x", "p", 1), child("", "A", "y", "p", 2)}},
		"Group":    {"So does another group.", list{child("", "A", "x", "p", 1)}, list{child("g", "A", "x", "p", 2)}, list{child("", "A", "x", "p", 1), child("g", "A", "x", "p", 2)}},
		"External": {"External entries hang on their policy.", list{external("p", 1, "Update")}, list{external("q", 2, "Update"), external("p", 2, "Update")}, list{external("p", 2, "Update"), external("q", 2, "Update")}},
		"Verbs":    {"And on their verbs.", list{external("p", 1, "Update")}, list{external("p", 2, "Delete", "Create")}, list{external("p", 1, "Update"), external("p", 2, "Delete", "Create")}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := append(list(nil), tc.have...)

			if diff := cmp.Diff(tc.want, allowance.Merge(tc.have, tc.add)); diff != "" {
				t.Errorf("%s\nMerge, -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(before, tc.have); diff != "" {
				t.Errorf("%s\nMerge changed its argument:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnAllowanceCoversItsKindAndWhatIsBelowItsMutation(t *testing.T) {
	size := change.Between(map[string]any{}, map[string]any{"spec": map[string]any{"size": "large"}})[0]
	kind := schema.GroupKind{Group: "example.org", Kind: "XDatabase"}

	cases := map[string]struct {
		a    v1alpha1.Allowance
		c    change.Change
		want bool
	}{
		"Field":      {v1alpha1.Allowance{Kind: "XDatabase", Mutation: "spec.size"}, size, true},
		"Above":      {v1alpha1.Allowance{Kind: "XDatabase", Mutation: "spec"}, size, true},
		"Other":      {v1alpha1.Allowance{Kind: "XDatabase", Mutation: "spec.siz"}, size, false},
		"Kind":       {v1alpha1.Allowance{Kind: "Database", Mutation: "spec.size"}, size, false},
		"Group":      {v1alpha1.Allowance{Kind: "XDatabase", APIGroup: "example.org", Mutation: "spec.size"}, size, true},
		"OtherGroup": {v1alpha1.Allowance{Kind: "XDatabase", APIGroup: "example.com", Mutation: "spec.size"}, size, false},
		"External":   {v1alpha1.Allowance{Kind: "XDatabase", Relation: v1alpha1.RelationExternal, Mutation: "spec.size"}, size, false},
		"Create":     {v1alpha1.Allowance{Kind: "XDatabase", Mutation: "create"}, change.Create(), true},
		"NotDelete":  {v1alpha1.Allowance{Kind: "XDatabase", Mutation: "create"}, change.Delete(), false},
		"Malformed":  {v1alpha1.Allowance{Kind: "XDatabase", Mutation: "spec["}, size, false},
		"Empty":      {v1alpha1.Allowance{Kind: "XDatabase"}, size, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := allowance.Covers(tc.a, kind, tc.c); got != tc.want {
				t.Errorf("Covers(%+v, %s) = %v", tc.a, tc.c.Field, got)
			}
		})
	}
}

func TestAnAllowanceServesUntilItsGenerationIsSeenAndFinished(t *testing.T) {
	const (
		claim  = "{apiVersion: a.org/v1, kind: Claim, metadata: {name: c, namespace: ns, generation: 5}, spec: {resourceRef: {apiVersion: a.org/v1, kind: X}}, status: {conditions: CONDITIONS}}"
		xr     = "{apiVersion: a/v1, kind: X, metadata: {name: x, generation: 5}, spec: {resourceRefs: []}, status: {conditions: CONDITIONS}}"
		deploy = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, generation: 5}, spec: {replicas: 2}, status: STATUS}"
		rds    = "{apiVersion: a/v1, kind: RDS, metadata: {name: r, generation: 5, annotations: {kausality.io/gate: '{v: 1, state: Closed, consumed: GATE}'}}, spec: {forProvider: {}}, " +
			"status: {conditions: [{type: Synced, status: 'True', observedGeneration: 9}, {type: Ready, status: 'True'}]}}"
	)

	child := v1alpha1.Allowance{Kind: "A", Mutation: "spec", Generation: 5, ID: "5.0"}
	external := v1alpha1.Allowance{Relation: v1alpha1.RelationExternal, Mutations: []string{"Update"}, Generation: 5, ID: "5.0"}

	cases := map[string]struct {
		reason, object, key, value string
		a                          v1alpha1.Allowance
		want                       bool
	}{
		"Synced":         {"A Claim has synced the generation.", claim, "CONDITIONS", "[{type: Synced, status: 'True', observedGeneration: 5}, {type: Ready, status: 'True', observedGeneration: 4}]", child, true},
		"Ready":          {"Ready counts as well.", claim, "CONDITIONS", "[{type: Synced, status: 'True'}, {type: Ready, status: 'True', observedGeneration: 5}]", child, true},
		"Older":          {"It has synced an older one.", claim, "CONDITIONS", "[{type: Synced, status: 'True', observedGeneration: 4}, {type: Ready, status: 'True', observedGeneration: 4}]", child, false},
		"Failed":         {"A failed attempt at the generation does not count.", claim, "CONDITIONS", "[{type: Synced, status: 'False', observedGeneration: 5}, {type: Ready, status: 'True', observedGeneration: 4}]", child, false},
		"FailedButReady": {"Nor does it when it is ready.", claim, "CONDITIONS", "[{type: Synced, status: 'False', observedGeneration: 5}, {type: Ready, status: 'True', observedGeneration: 5}]", child, false},
		"NotReady":       {"Synced is not finished.", claim, "CONDITIONS", "[{type: Synced, status: 'True', observedGeneration: 5}, {type: Ready, status: 'False', observedGeneration: 5}]", child, false},
		"ClaimShows":     {"What a Claim shows of its XR says nothing of the Claim.", claim, "CONDITIONS", "[{type: Kausality, status: 'True', message: 'generation 99: settled'}, {type: Synced, status: 'True', observedGeneration: 4}]", child, false},
		"NoStatus":       {"Nothing was seen yet.", claim, "CONDITIONS", "[]", child, false},
		"Settled":        {"The function says that all has arrived.", xr, "CONDITIONS", "[" + fixture.State(v1alpha1.PhaseSettled, 5, 0) + ", {type: Synced, status: 'False'}]", child, true},
		"SettledHeld":    {"With something else held.", xr, "CONDITIONS", "[" + strings.Replace(fixture.State(v1alpha1.PhaseSettled, 5, 0), "True", "False", 1) + "]", child, true},
		"SettledOlder":   {"It says so of an older generation.", xr, "CONDITIONS", "[" + fixture.State(v1alpha1.PhaseSettled, 4, 0) + ", {type: Synced, status: 'True', observedGeneration: 5}, {type: Ready, status: 'True', observedGeneration: 5}]", child, false},
		"InProgress":     {"It says that more is to come, whatever Synced says.", xr, "CONDITIONS", "[" + fixture.State(v1alpha1.PhaseProgressing, 5, 0) + ", {type: Synced, status: 'True', observedGeneration: 5}, {type: Ready, status: 'True', observedGeneration: 5}]", child, false},
		"NoFunction":     {"Without a function Synced and Ready tell.", xr, "CONDITIONS", "[{type: Synced, status: 'True', observedGeneration: 5}, {type: Ready, status: 'True', observedGeneration: 5}]", child, true},
		"RolledOut":      {"A Deployment is done.", deploy, "STATUS", "{observedGeneration: 5, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}", child, true},
		"RollingOut":     {"It goes on scaling for the whole rollout.", deploy, "STATUS", "{observedGeneration: 5, replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}", child, false},
		"GateClosed":     {"The gate has closed behind it.", rds, "GATE", "5", external, true},
		"GateBefore":     {"The gate has not, though the provider synced.", rds, "GATE", "4", external, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, strings.Replace(tc.object, tc.key, tc.value, 1))
			if got := allowance.Served(u, tc.a); got != tc.want {
				t.Errorf("%s\nServed: %v, want %v", tc.reason, got, tc.want)
			}

			if left := allowance.Unserved(u, []v1alpha1.Allowance{tc.a}); (len(left) == 0) != tc.want {
				t.Errorf("%s\nUnserved: %+v", tc.reason, left)
			}
		})
	}
}

func TestATraceKeepsTheNewest(t *testing.T) {
	var have []v1alpha1.TraceEntry
	for _, f := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "c"} {
		have = allowance.AddTrace(have, []v1alpha1.TraceEntry{{Field: f}})
	}

	got := make([]string, 0, len(have))
	for _, e := range have {
		got = append(got, e.Field)
	}

	if diff := cmp.Diff([]string{"c", "j", "i", "h", "g", "f", "e", "d"}, got); diff != "" {
		t.Errorf("AddTrace, -want, +got:\n%s", diff)
	}
}

func TestTheSizeIsLimited(t *testing.T) {
	if err := allowance.CheckSize(strings.Repeat("a", v1alpha1.MaxAllowancesBytes)); err != nil {
		t.Errorf("CheckSize at the limit: %v", err)
	}

	if err := allowance.CheckSize(strings.Repeat("a", v1alpha1.MaxAllowancesBytes+1)); err == nil || !strings.Contains(err.Error(), "65537 bytes") {
		t.Errorf("CheckSize over the limit: %v", err)
	}
}
