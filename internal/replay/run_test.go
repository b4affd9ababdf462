// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/inforce"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/internal/replay"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// recordings are made once: most of the time goes into compiling policies.
var recordings = sync.OnceValues(corpus.Recordings)

func recorded(tb testing.TB) []corpus.Recording {
	tb.Helper()

	out, err := recordings()
	if err != nil {
		tb.Fatal(err)
	}

	return out
}

// write writes a log as a file has it: what was in force once.
func write(out io.Writer, entries ...decisionlog.Entry) {
	digests := map[string]bool{}

	for _, e := range entries {
		if !digests[e.Digest] {
			_, _ = out.Write(e.InForce)
		}

		digests[e.Digest] = true
		_, _ = out.Write(e.Decision)
	}
}

func log(name, text string) replay.Log {
	return replay.Log{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func run(tb testing.TB, policies replay.Policies, logs ...replay.Log) *replay.Summary {
	tb.Helper()

	out, err := replay.Run(tb.Context(), logs, replay.Options{Policies: policies, Workers: 4})
	if err != nil {
		tb.Fatal(err)
	}

	return out
}

// TestTheWholeCorpusIsDecidedAsRecorded also in rotated files, of which each has what was in
// force, and in one that is compressed.
func TestTheWholeCorpusIsDecidedAsRecorded(t *testing.T) {
	t.Parallel()

	all := recorded(t)
	entries := make([]decisionlog.Entry, len(all))

	for i := range all {
		entries[i] = all[i].Entry
	}

	var first, second, zipped bytes.Buffer

	write(&first, entries[:len(entries)/2]...)
	write(&second, entries[len(entries)/2:]...)

	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write(first.Bytes())

	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}

	got := run(t, replay.Policies{}, log("a", zipped.String()), log("b", second.String()))
	// The error of an expression was about what is masked.
	want := &replay.Summary{Decisions: len(all), AsRecorded: len(all), ByOthers: 2}

	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

const (
	reader = `
kind: AllowancePolicy
apiVersion: kausality.io/v1alpha1
metadata: {name: widgets}
spec:
  match: {kind: Widget, fields: [spec.size], %s}
  subjects: [{kind: User, name: %s, mayInitiate: true}]
  allow: [{kind: ConfigMap, mutations: [data]}]
`
	governing = `
kind: Enforcement
apiVersion: kausality.io/v1alpha1
metadata: {name: all}
spec:
  match: {resourceRules: [{apiGroups: ["*"], resources: ["*"]}]}
  validationActions: [%s]
`
)

func parse[T any](tb testing.TB, text string, args ...any) T {
	tb.Helper()

	var out T
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, text, args...), &out); err != nil {
		tb.Fatal(err)
	}

	return out
}

// byHans lets Hans change the size of widgets, under some condition.
func byHans(tb testing.TB, match string) v1alpha1.AllowancePolicy {
	tb.Helper()

	return parse[v1alpha1.AllowancePolicy](tb, reader, match, "hans")
}

// scenario has Hans change a widget, where another policy is in force.
func scenario(tb testing.TB, name string, policies ...v1alpha1.AllowancePolicy) decisionlog.Entry {
	tb.Helper()

	set := inforce.NewCache().Set(inforce.Objects{
		Policies: policies, Enforcements: []v1alpha1.Enforcement{parse[v1alpha1.Enforcement](tb, governing, "Deny")},
	})
	if len(set.Bad) > 0 {
		tb.Fatal(set.Bad)
	}

	for _, r := range recorded(tb) {
		if r.Request.New == nil || r.Request.Old == nil || r.Request.New.GetKind() != "Widget" || len(r.Decision.Findings) != 1 ||
			r.Decision.Findings[0].Change.Field != "spec.size" {
			continue
		}

		req := r.Request
		req.Basis.Policies, req.Basis.Enforcements, req.Basis.Bindings = set.Policies, set.Enforcements, nil
		req.Authorizer, req.Action, req.Subresource = nil, "", ""
		req.Resource.Resource, req.User.Name, req.User.Groups = "widgets", "hans", nil
		req.Old, req.New = req.Old.DeepCopy(), req.New.DeepCopy()
		req.Old.SetName(name)
		req.New.SetName(name)

		for _, u := range []*unstructured.Unstructured{req.Old, req.New} {
			if err := unstructured.SetNestedField(u.Object, "hunter2-hunter2", "spec", "password"); err != nil {
				tb.Fatal(err)
			}
		}

		answers := &decisionlog.Answers{}
		answers.Watch(&req)

		d := decision.Decide(req)

		var encoder decisionlog.Encoder

		e, err := encoder.Encode(decisionlog.Asked{By: decisionlog.By{Part: decisionlog.PartMutate}, Answers: answers}, &req, &d)
		if err != nil {
			tb.Fatal(err)
		}

		return e
	}

	tb.Fatal("no scenario changes the size of a widget")

	return decisionlog.Entry{}
}

func TestOtherPoliciesDecideOtherwise(t *testing.T) {
	t.Parallel()

	other := parse[v1alpha1.AllowancePolicy](t, reader, "cel: []", "anna")
	shadow := byHans(t, "cel: []")
	shadow.Spec.EnforcementMode = v1alpha1.EnforcementModeShadow

	withParams := byHans(t, `cel: ["params.data.size == 'large'"]`)
	withParams.Spec.ParamKind = &v1alpha1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	withParams.Spec.ParamRef = &v1alpha1.ParamRef{Name: "sizes", Namespace: "default"}

	for name, tc := range map[string]struct {
		reason   string
		was      v1alpha1.AllowancePolicy
		policies replay.Policies
		// want is BEFORE -> AFTER, because, or what cannot be known; empty where nothing changes.
		want           string
		allowed, other int
	}{
		"Allowed": {
			"What nobody let Hans do, this policy does.", other,
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{byHans(t, "cel: []")}}},
			`Denied -> Allowed, policy "widgets"`, 1, 0,
		},
		"Unallowed": {
			"What Hans might do, this one lets Anna alone do.", byHans(t, "cel: []"),
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{other}}},
			"Allowed -> Denied, ", -1, 0,
		},
		"Enforcement": {
			"Another kind stays as it was: it is held and not denied, and nobody may still.", other,
			replay.Policies{Objects: inforce.Objects{Enforcements: []v1alpha1.Enforcement{parse[v1alpha1.Enforcement](t, governing, "Hold")}}},
			"Denied -> Held, ", 0, 1,
		},
		"Same": {
			"The same policies decide the same.", other,
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{other}}},
			"", 0, 0,
		},
		"Shadow": {
			"What is in Shadow mode is enforced; without it no policy was about the field.", shadow,
			replay.Policies{Enforce: true},
			`Ungoverned -> Allowed, policy "widgets"`, 0, 1,
		},
		"Unknown": {
			"What a parameter was that nobody asked for is not guessed.", other,
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{withParams}}},
			`what ConfigMap "default/sizes" was`, 0, 0,
		},
		"Masked": {
			"Nor is a credential, be it by its length.", other,
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{byHans(t, `cel: ["object.spec.password.size() < 10"]`)}}},
			"what is masked: password", 0, 0,
		},
		"NotMasked": {
			"What has but its name in a longer one is.", other,
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{byHans(t, `cel: ["!has(object.spec.passwordSecretRef)"]`)}}},
			`Denied -> Allowed, policy "widgets"`, 1, 0,
		},
		"ManagedFields": {
			"Nor is who wrote which fields, which no record has of the new object.", other,
			replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{
				byHans(t, `cel: ["!has(object.metadata.managedFields)"]`),
			}}},
			"who wrote which fields: managedFields", 0, 0,
		},
		"ManagedFieldsBefore": {
			"Neither where they decided then.", byHans(t, `cel: ["has(object.metadata.managedFields)"]`),
			replay.Policies{},
			"who wrote which fields: managedFields", 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if err := tc.policies.Check(); err != nil {
				t.Fatal(err)
			}

			var text bytes.Buffer

			write(&text, scenario(t, "one", tc.was), scenario(t, "two", tc.was))

			s := run(t, tc.policies, log("a", text.String()))

			var said strings.Builder

			for _, c := range s.Changes {
				fmt.Fprintf(&said, "%s -> %s, %s", c.Before, c.After, c.Because)

				if c.Decisions != 2 || c.Objects != 2 || len(c.Examples) != 2 || c.Examples[1].Name != "two" || c.Examples[1].Line != 3 {
					t.Errorf("%s: not one of two: %+v", tc.reason, c)
				}
			}

			for _, n := range s.NotKnown {
				said.WriteString(n.Name)
			}

			got := said.String()

			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}

			if s.Allowed-s.Unallowed != 2*tc.allowed || s.Changed-s.Allowed-s.Unallowed != 2*tc.other ||
				s.Decisions != 2 || s.Changed+s.Unknown+s.AsRecorded != 2 {
				t.Errorf("%s: %+v", tc.reason, s)
			}
		})
	}
}

func TestWhatCannotBeReadIsSaidAndTheRestIsDecided(t *testing.T) {
	t.Parallel()

	e := scenario(t, "one", byHans(t, "cel: []"))
	inForce, one := string(e.InForce), string(e.Decision)
	moved := `{"kind":"Decision",` + strings.Replace(strings.TrimPrefix(one, "{"), `"kind":"Decision",`, "", 1)

	for name, tc := range map[string]struct {
		reason, text string
		want         replay.Summary
	}{
		"Truncated": {"A last line that does not end is no failure.", inForce + one + one[:len(one)/2], replay.Summary{Decisions: 1, AsRecorded: 1, Truncated: 1}},
		"Unended":   {"One that is whole counts.", inForce + one + strings.TrimSpace(one), replay.Summary{Decisions: 2, AsRecorded: 2}},
		"Corrupt": {
			"A line in the middle is said.", inForce + one[:len(one)/2] + "\n" + one,
			replay.Summary{Decisions: 1, AsRecorded: 1, Unreadable: 1, Problems: []replay.Problem{
				{Log: "a", Line: 2, Message: "cannot read decision: unexpected end of JSON input"},
			}},
		},
		"Other": {
			"Neither is what is none of ours.", inForce + "{\"a\": 1}\n\n" + one,
			replay.Summary{Decisions: 1, AsRecorded: 1, Unreadable: 1, Problems: []replay.Problem{
				{Log: "a", Line: 2, Message: "it is no line of a log of decisions"},
			}},
		},
		"Skipped": {
			"Kinds and versions that are not known yet are skipped.",
			inForce + `{"apiVersion":"log.kausality.io/v1","kind":"Decision"}` + "\n" + `{"apiVersion":"log.kausality.io/v1alpha1","kind":"Future"}` + "\n" + one,
			replay.Summary{Decisions: 1, AsRecorded: 1, Skipped: 2},
		},
		"Missing": {
			"What was in force has to be there before.", one + inForce + one,
			replay.Summary{Decisions: 1, AsRecorded: 1, Unreadable: 1, Problems: []replay.Problem{
				{Log: "a", Line: 1, Message: fmt.Sprintf("cannot decide again: what was in force is not in the log before it: %q", e.Digest)},
			}},
		},
		"Dropped":  {"What was left out is added up.", inForce + string(decisionlog.DroppedLine(3)) + one + string(decisionlog.DroppedLine(4)), replay.Summary{Decisions: 1, AsRecorded: 1, Dropped: 7}},
		"Order":    {"Fields may have been put in order by another program.", inForce + moved, replay.Summary{Decisions: 1, AsRecorded: 1}},
		"Nothing":  {"An empty log has no decisions.", "", replay.Summary{}},
		"NoObject": {"A decision is about an object.", inForce + `{"apiVersion":"log.kausality.io/v1alpha1","kind":"Decision","inForce":"` + e.Digest + "\"}\n", replay.Summary{Unreadable: 1, Problems: []replay.Problem{{Log: "a", Line: 2, Message: "cannot decide again: it has neither an old nor a new object"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(&tc.want, run(t, replay.Policies{}, log("a", tc.text)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestALogThatCannotBeOpenedDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()

	e := scenario(t, "one", byHans(t, "cel: []"))
	gone := replay.Log{Name: "gone", Open: func() (io.ReadCloser, error) { return nil, errors.New("boom") }}

	var zipped bytes.Buffer

	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write(append(e.InForce, e.Decision...))

	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}

	got := run(t, replay.Policies{}, gone, log("cut", zipped.String()[:zipped.Len()-10]), log("a", string(e.InForce)+string(e.Decision)))
	if got.AsRecorded < 1 || got.Unreadable != 2 || got.Problems[0] != (replay.Problem{Log: "gone", Message: "boom"}) ||
		!strings.HasPrefix(got.Problems[1].Message, "cannot read on after line ") {
		t.Errorf("%+v", got)
	}
}

// TestTheSameLogGivesTheSameSummary however many decide at once, and shows each verdict that is another
// than the outcome in the log.
func TestTheSameLogGivesTheSameSummary(t *testing.T) {
	t.Parallel()

	all := recorded(t)
	entries := make([]decisionlog.Entry, len(all))

	for i := range all {
		entries[i] = all[i].Entry
	}

	var text bytes.Buffer

	write(&text, entries...)

	policies := replay.Policies{Objects: inforce.Objects{Policies: []v1alpha1.AllowancePolicy{byHans(t, "cel: []")}}}

	var first *replay.Summary

	for _, workers := range []int{1, 2, 7} {
		got, err := replay.Run(t.Context(), []replay.Log{log("a", text.String())}, replay.Options{Policies: policies, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}

		if first == nil {
			first = got
		}

		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("%d workers, -1, +%d:\n%s", workers, workers, diff)
		}
	}

	if first.Changed == 0 || first.Decisions != len(all) {
		t.Errorf("%+v", first)
	}
}

// usual are the recordings but for those that show what expressions may cost at most, of which
// one takes longer than thousands of others.
func usual(tb testing.TB) []decisionlog.Entry {
	tb.Helper()

	var out []decisionlog.Entry

	for _, r := range recorded(tb) {
		if !strings.Contains(r.Name, "cost") {
			out = append(out, r.Entry)
		}
	}

	return out
}

// BenchmarkReplay replays the corpus over and over: decisions/s is what the machine decides.
func BenchmarkReplay(b *testing.B) {
	const times = 10

	entries := usual(b)

	var text bytes.Buffer

	for range times {
		write(&text, entries...)
	}

	for b.Loop() {
		if s := run(b, replay.Policies{}, log("a", text.String())); s.AsRecorded != times*len(entries) {
			b.Fatalf("%+v", s)
		}
	}

	b.ReportMetric(float64(times*len(entries)*b.N)/b.Elapsed().Seconds(), "decisions/s")
}
