// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// texts are such as need no quotes, mostly.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[A-Za-z][A-Za-z0-9._/@\[\]*:+=()-]{0,20}`),
		rapid.SampledFrom([]string{"yes", "No", "null", "True", "y", "a:", "1e5", "0x1", "2026-11-21", "~", "=", "<<", "", " a", "a b", "a: b", "a #b"}),
		rapid.String(),
	)
}

func hops() *rapid.Generator[v1alpha1.Hop] {
	return rapid.Custom(func(t *rapid.T) v1alpha1.Hop {
		return v1alpha1.Hop{
			Kind: texts().Draw(t, "kind"), Name: texts().Draw(t, "name"), Field: texts().Draw(t, "field"),
			Namespace:    namespaces().Draw(t, "namespace"),
			Generation:   rapid.Int64().Draw(t, "generation"),
			Request:      rapid.SampledFrom([]int64{0, 0, 1, 12, -1}).Draw(t, "request"),
			Attestations: rapid.MapOfN(texts(), texts(), -1, 2).Draw(t, "attestations"),
			Unknown:      unknown().Draw(t, "unknown"),
		}
	})
}

// namespaces are the carrying object's, mostly, or none, or another one.
func namespaces() *rapid.Generator[*string] {
	return rapid.OneOf(rapid.Just[*string](nil), rapid.Map(rapid.OneOf(rapid.Just(""), texts()), func(s string) *string { return &s }))
}

// unknown is nothing, or a field of a later version.
func unknown() *rapid.Generator[v1alpha1.Unknown] {
	return rapid.SampledFrom([]v1alpha1.Unknown{
		nil, nil, nil, {"new": []byte(`1`)}, {"a": []byte(`{"b":["c",null,true]}`), "z": []byte(`"y"`)},
	})
}

// times are none, mostly, or one of which RFC 3339 writes the seconds.
func times() *rapid.Generator[*metav1.Time] {
	at := metav1.Date(2026, time.March, 1, 12, 30, 0, 0, time.UTC)

	return rapid.SampledFrom([]*metav1.Time{nil, nil, &at, {}})
}

func allowances() *rapid.Generator[[]v1alpha1.Allowance] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.Allowance {
		generation := rapid.Int64().Draw(t, "generation")

		return v1alpha1.Allowance{
			ID: allowance.ID(generation, rapid.Int64Range(0, 12).Draw(t, "request")), Source: sources().Draw(t, "source"),
			APIGroup: texts().Draw(t, "apiGroup"), Kind: texts().Draw(t, "kind"), Mutation: texts().Draw(t, "mutation"),
			Relation:   v1alpha1.Relation(rapid.SampledFrom([]string{"", "Child", "External", "Other"}).Draw(t, "relation")),
			Mutations:  rapid.SliceOfN(texts(), 0, 2).Draw(t, "mutations"),
			Generation: generation, Initiator: texts().Draw(t, "initiator"),
			Policy: texts().Draw(t, "policy"), Until: times().Draw(t, "until"), Trace: rapid.SliceOfN(hops(), 0, 3).Draw(t, "trace"),
			Unknown: unknown().Draw(t, "unknown"),
		}
	}), 0, 3)
}

func sources() *rapid.Generator[v1alpha1.AllowanceSource] {
	return rapid.Custom(func(t *rapid.T) v1alpha1.AllowanceSource {
		return v1alpha1.AllowanceSource{
			Type: rapid.SampledFrom([]v1alpha1.SourceType{
				v1alpha1.SourcePolicy, v1alpha1.SourceWindow, v1alpha1.SourceApproval, v1alpha1.SourceDeletion, v1alpha1.SourceCreation,
			}).Draw(t, "type"),
			Name: texts().Draw(t, "name"), Field: texts().Draw(t, "field"),
			From: rapid.SampledFrom([]string{"", "", "5.0", "12.3", "five"}).Draw(t, "from"),
		}
	})
}

func entries() *rapid.Generator[[]v1alpha1.TraceEntry] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.TraceEntry {
		return v1alpha1.TraceEntry{
			Field: texts().Draw(t, "field"), Generation: rapid.Int64().Draw(t, "generation"),
			Initiator: texts().Draw(t, "initiator"), Trace: rapid.SliceOfN(hops(), 0, 3).Draw(t, "trace"),
			Unknown: unknown().Draw(t, "unknown"),
		}
	}), 0, 3)
}

// canonical is a value as it reads from JSON: what cannot be distinguished there,
// such as no list and an empty one, is the same. Text that is no UTF-8 is
// written as what stands for it.
func canonical[T any](tb rapid.TB, list []T) []T {
	tb.Helper()

	raw, err := json.Marshal(list)
	if err != nil {
		tb.Fatal(err)
	}

	var out []T
	if err := json.Unmarshal(raw, &out); err != nil {
		tb.Fatal(err)
	}

	from := allowance.Unknown(list)
	for i, rest := range allowance.Unknown(out) {
		*rest = *from[i]
	}

	return out
}

// reader reads one kind of annotation.
type reader[T any] func(*unstructured.Unstructured) ([]T, error)

func checkRoundTrip[T any](tb rapid.TB, key string, read reader[T], list []T) {
	tb.Helper()

	list = canonical(tb, list)
	text := allowance.FormatList(list)

	got, err := read(carrying(key, text))
	if err != nil {
		tb.Fatalf("cannot parse what was written: %v\n%s", err, text)
	}

	if diff := cmp.Diff(list, canonical(tb, got)); len(list) > 0 && diff != "" {
		tb.Errorf("parse(format(x)), -x, +got:\n%s\n%s", diff, text)
	}

	if again := allowance.FormatList(got); again != text {
		tb.Errorf("format is not stable:\n%s\n%s", text, again)
	}

	byLibrary, err := allowance.Format(list)
	if err != nil {
		tb.Fatal(err)
	}

	if quick, ok := allowance.WritePlain(list); ok && len(list) > 0 && quick != byLibrary {
		tb.Errorf("the plain writer differs from the YAML library, -library, +plain:\n%s", cmp.Diff(byLibrary, quick))
	}
}

func TestFormatThenParseIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRoundTrip(t, v1alpha1.AnnotationAllowances, allowance.Parse, allowances().Draw(t, "allowances"))
		checkRoundTrip(t, v1alpha1.AnnotationTrace, allowance.ParseTrace, entries().Draw(t, "entries"))
	})
}

// checkRead holds the plain reader against the YAML library.
func checkRead[T any](tb testing.TB, text string) {
	tb.Helper()

	var quick, byLibrary []T
	if !allowance.ReadPlain(text, &quick) {
		return
	}

	if err := yaml.UnmarshalStrict([]byte(text), &byLibrary); err != nil {
		tb.Fatalf("the plain reader reads what the YAML library does not: %v\n%s", err, text)
	}

	if diff := cmp.Diff(canonical(tb, byLibrary), canonical(tb, quick)); diff != "" {
		tb.Errorf("the plain reader differs from the YAML library, -library, +plain:\n%s\n%s", diff, text)
	}
}

// checkReadGate does so for a gate's record.
func checkReadGate(tb testing.TB, text string) {
	tb.Helper()

	var quick, byLibrary v1alpha1.GateRecord
	if !allowance.ReadPlain(text, &quick) {
		return
	}

	if err := yaml.UnmarshalStrict([]byte(text), &byLibrary); err != nil {
		tb.Fatalf("the plain reader reads what the YAML library does not: %v\n%s", err, text)
	}

	if diff := cmp.Diff(byLibrary, quick); diff != "" {
		tb.Errorf("the plain reader differs from the YAML library, -library, +plain:\n%s\n%s", diff, text)
	}
}

// FuzzParse reads annotations: nothing panics, what reads is written and reads
// the same again, and the plain reader agrees with the YAML library.
func FuzzParse(f *testing.F) {
	seeds, err := corpus.Annotations()
	if err != nil {
		f.Fatal(err)
	}

	for _, text := range seeds {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		checkRead[v1alpha1.Allowance](t, text)
		checkRead[v1alpha1.TraceEntry](t, text)
		checkReadGate(t, text)

		if list, err := allowance.Parse(carrying(v1alpha1.AnnotationAllowances, text)); err == nil {
			checkRoundTrip(t, v1alpha1.AnnotationAllowances, allowance.Parse, list)
		}

		if list, err := allowance.ParseTrace(carrying(v1alpha1.AnnotationTrace, text)); err == nil {
			checkRoundTrip(t, v1alpha1.AnnotationTrace, allowance.ParseTrace, list)
		}

		if list, err := allowance.ParseHeld(carrying(v1alpha1.AnnotationHeld, text)); err == nil {
			checkRoundTrip(t, v1alpha1.AnnotationHeld, allowance.ParseHeld, list)
		}

		if rec, err := allowance.ParseGate(carrying(v1alpha1.AnnotationGate, text)); err == nil && rec != nil {
			checkGateRoundTrip(t, rec)
		}
	})
}

func checkGateRoundTrip(tb testing.TB, rec *v1alpha1.GateRecord) {
	tb.Helper()

	text, err := allowance.Format(rec)
	if err != nil {
		tb.Skip("a time that RFC 3339 cannot write: ", err)
	}

	got, err := allowance.ParseGate(carrying(v1alpha1.AnnotationGate, text))
	if err != nil {
		tb.Fatalf("cannot parse what was written: %v\n%s", err, text)
	}

	if again, err := allowance.Format(got); err != nil || again != text {
		tb.Errorf("format is not stable: %v\n%s\n%s", err, text, again)
	}
}

func TestAnnotationsOfThePlainShapeTakeTheShortWay(t *testing.T) {
	const plainly = `- kind: XDatabase
  mutation: spec.containers[0].image
  generation: 5
  id: "5.1"
  initiator: hans@example.com
  policy: database-claim-to-xr
  source:
    type: Policy
    name: database-claim-to-xr
    field: spec.size
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    attestations:
      metadata.annotations[jira]: INFRA-23232
- relation: External
  mutations:
  - Update
  generation: 5
  id: "5.0"
  initiator: system:serviceaccount:a:b
  source:
    type: Policy
`

	var list []v1alpha1.Allowance
	if !allowance.ReadPlain(plainly, &list) {
		t.Fatal("it reads the long way")
	}

	got, ok := allowance.WritePlain(list)
	if !ok {
		t.Fatal("it is written the long way")
	}

	if diff := cmp.Diff(plainly, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	for name, edit := range map[string][2]string{
		"A comment":            {"generation: 5\n", "generation: 5 # five\n"},
		"Quotes":               {"kind: XDatabase", `kind: "XDatabase"`},
		"Another order":        {"kind: XDatabase\n  mutation: spec.containers[0].image\n", "mutation: spec.size\n  kind: XDatabase\n"},
		"A field twice":        {"  mutation: spec.containers[0].image\n", "  mutation: a\n  mutation: b\n"},
		"A key twice":          {"INFRA-23232\n", "INFRA-23232\n      metadata.annotations[jira]: X\n"},
		"An unknown field":     {"policy: database-claim-to-xr\n", "policy: database-claim-to-xr\n  new: field\n"},
		"A word for true":      {"policy: database-claim-to-xr", "policy: yes"},
		"A number for a text":  {"policy: database-claim-to-xr", "policy: 7"},
		"A leading zero":       {"generation: 5\n  id", "generation: 05\n  id"},
		"No line end":          {"    type: Policy\n", "    type: Policy"},
		"No source":            {"  source:\n    type: Policy\n", ""},
		"No ID":                {"  id: \"5.0\"\n", ""},
		"A number for an ID":   {"\"5.0\"", "5.0"},
		"Another ID":           {"\"5.0\"", "\"5.00\""},
		"Another indentation":  {"  - Update", "    - Update"},
		"No mutations":         {"  mutations:\n  - Update\n", "  mutations:\n"},
		"No hops":              {"  trace:\n", "  trace:\n  policy: a\n"},
		"An empty attestation": {"      metadata.annotations[jira]: INFRA-23232\n", ""},
		"No kind":              {"- relation: External\n  mutations:\n  - Update\n  generation", "- generation"},
		"A colon at the end":   {"initiator: hans@example.com", "initiator: hans:"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(plainly, edit[0], edit[1], 1)
			if text == plainly {
				t.Fatal("the edit does nothing")
			}

			if allowance.ReadPlain(text, &list) {
				t.Errorf("it reads the short way, as %v", list)
			}
		})
	}
}

func TestAGateRecordTakesTheShortWay(t *testing.T) {
	const plainly = `v: 1
state: Open
actions:
- Create
- Update
generation: 4
since: "2026-11-21T00:00:00Z"
consumed: 2
creating: true
allowances:
- relation: External
  mutations:
  - Update
  generation: 3
  id: "3.0"
  initiator: hans@example.com
  source:
    type: Policy
`

	var rec v1alpha1.GateRecord
	if !allowance.ReadPlain(plainly, &rec) {
		t.Fatal("it reads the long way")
	}

	checkReadGate(t, plainly)

	if got, err := allowance.Format(&rec); err != nil || got != plainly {
		t.Errorf("Format: %v\n%s", err, cmp.Diff(plainly, got))
	}

	for name, edit := range map[string][2]string{
		"An unknown field": {"consumed: 2\n", "consumed: 2\nregion: west\n"},
		"Another time":     {`"2026-11-21T00:00:00Z"`, `"2026-11-21T00:00:00+01:00"`},
		"No quotes":        {`"2026-11-21T00:00:00Z"`, `2026-11-21T00:00:00Z`},
		"No actions":       {"- Create\n- Update\n", ""},
		"No time":          {"since: \"2026-11-21T00:00:00Z\"\n", ""},
		"More behind it":   {"    type: Policy\n", "    type: Policy\nmore: x\n"},
		"False":            {"creating: true", "creating: false"},
	} {
		t.Run(name, func(t *testing.T) {
			if text := strings.Replace(plainly, edit[0], edit[1], 1); text == plainly || allowance.ReadPlain(text, &rec) {
				t.Errorf("it reads the short way, or was not edited:\n%s", text)
			}
		})
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	const later = `- kind: XDatabase
  mutation: spec.size
  generation: 5
  id: "5.0"
  initiator: hans@example.com
  source:
    type: Policy
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.size
    cluster: eu-1
  approvals:
  - by: alice
    twice: true
`

	list, err := allowance.Parse(carrying(v1alpha1.AnnotationAllowances, later))
	if err != nil {
		t.Fatal(err)
	}

	merged := allowance.Merge(list, []v1alpha1.Allowance{{
		Kind: "Other", Mutation: "create", Generation: 6, ID: "6.0", Initiator: "anna", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceCreation},
	}})

	want := later + "- kind: Other\n  mutation: create\n  generation: 6\n  id: \"6.0\"\n  initiator: anna\n  source:\n    type: Creation\n"
	if diff := cmp.Diff(want, allowance.FormatList(merged)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	const gate = `v: 1
state: Closed
generation: 4
since: "2026-11-21T00:00:00Z"
region: west
`

	rec, err := allowance.ParseGate(carrying(v1alpha1.AnnotationGate, gate))
	if err != nil {
		t.Fatal(err)
	}

	got, err := allowance.Format(rec)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(gate, got); diff != "" {
		t.Errorf("the gate's record, -want, +got:\n%s", diff)
	}
}
