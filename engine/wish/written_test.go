// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

const plainRecord = "apiVersion: apps/v1\nbaseline:\n- spec.replicas\n- spec.ports[0]\nkind: Deployment\nleaves: AQkYWXNTFLRPlpw5HFM\nversion: 1\n"

// FuzzRecord reads and writes records with and without the YAML library: both are to
// give the same.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		plainRecord,
		strings.Replace(plainRecord, "baseline:\n- spec.replicas\n- spec.ports[0]\n", "", 1),
		strings.Replace(plainRecord, "AQkYWXNTFLRPlpw5HFM", "A"+strings.Repeat("/+aZ09", 1000), 1),
		strings.Replace(plainRecord, "AQkYWXNTFLRPlpw5HFM", "1234567890123456789", 1),
		strings.Replace(plainRecord, "AQkYWXNTFLRPlpw5HFM", `""`, 1),
		strings.Replace(plainRecord, "kind: Deployment", "kind: Deployment\nkind: Deployment", 1),
		strings.Replace(plainRecord, "version: 1", "version: 007", 1),
		strings.Replace(plainRecord, "spec.replicas", "yes", 1),
		"{apiVersion: apps/v1, kind: Deployment, leaves: AQkYWXNTFLRPlpw5HFM, version: 1}",
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		var quick, byLibrary wish.Written
		if quick.ReadPlain(text) {
			if err := yaml.UnmarshalStrict([]byte(text), &byLibrary); err != nil {
				t.Fatalf("the plain reader reads what the YAML library does not: %v\n%s", err, text)
			}

			if diff := cmp.Diff(byLibrary, quick); diff != "" {
				t.Errorf("the plain reader differs from the YAML library, -library, +plain:\n%s\n%s", diff, text)
			}
		}

		byLibrary = wish.Written{}
		if yaml.Unmarshal([]byte(text), &byLibrary) != nil {
			return
		}

		if got, ok := byLibrary.FormatPlain(); ok {
			want, err := yaml.Marshal(byLibrary)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the plain writer differs from the YAML library, -library, +plain:\n%s", diff)
			}
		}
	})
}

func TestARecordOfThePlainShapeTakesTheShortWay(t *testing.T) {
	var w wish.Written
	if !w.ReadPlain(plainRecord) {
		t.Fatal("it reads the long way")
	}

	got, ok := w.FormatPlain()
	if !ok {
		t.Fatal("it is written the long way")
	}

	if diff := cmp.Diff(plainRecord, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	for name, edit := range map[string][2]string{
		"A comment":             {"kind: Deployment\n", "kind: Deployment # of apps\n"},
		"Quotes":                {"kind: Deployment", `kind: "Deployment"`},
		"Another order":         {"kind: Deployment\nleaves: AQkYWXNTFLRPlpw5HFM\n", "leaves: AQkYWXNTFLRPlpw5HFM\nkind: Deployment\n"},
		"An unknown field":      {"version: 1\n", "version: 1\nnew: field\n"},
		"No baseline":           {"- spec.replicas\n- spec.ports[0]\n", ""},
		"A word for true":       {"- spec.replicas", "- yes"},
		"A digit in front":      {"leaves: A", "leaves: 1"},
		"A sign in front":       {"leaves: A", "leaves: +"},
		"No line end":           {"version: 1\n", "version: 1"},
		"A leading zero":        {"version: 1", "version: 01"},
		"A record without kind": {"kind: Deployment\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(plainRecord, edit[0], edit[1], 1)
			if text == plainRecord {
				t.Fatal("the edit does nothing")
			}

			var w wish.Written
			if w.ReadPlain(text) {
				t.Errorf("it reads the short way, as %v", w)
			}
		})
	}
}

// FuzzHash holds the hash of scalars against that of their JSON.
func FuzzHash(f *testing.F) {
	f.Add("", int64(0))
	f.Add("plain", int64(-1))
	f.Add("ünï<&>\"\\\n\x7f\u2028", int64(1<<63-1))

	f.Fuzz(func(t *testing.T, s string, n int64) {
		for _, v := range []any{s, n, n > 0} {
			if got, ok := wish.HashOfScalar(v); ok && got != wish.HashByJSON(v) {
				t.Errorf("the hash of %#v is %x, and %x by its JSON", v, got, wish.HashByJSON(v))
			}
		}
	})
}

func TestMostScalarsAreHashedWithoutTheirJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  any
		want   bool
	}{
		"Text":    {reason: "Most texts stand in JSON as they are.", value: "db.t3.medium [a] {b} 'c'", want: true},
		"Number":  {reason: "A whole number is written in one way.", value: int64(5432), want: true},
		"Bool":    {reason: "So is a truth value.", value: true, want: true},
		"Quote":   {reason: "JSON escapes quotes.", value: `a"b`},
		"Markup":  {reason: "Go escapes what means something in HTML.", value: "a<b"},
		"Unicode": {reason: "What is no UTF-8 is replaced.", value: "\xff"},
		"Float":   {reason: "Fractions are rounded in more than one way.", value: 1.5},
		"Map":     {reason: "It is no scalar.", value: map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := wish.HashOfScalar(tc.value); got != tc.want {
				t.Errorf("%s HashOfScalar(%v): %v, want %v", tc.reason, tc.value, got, tc.want)
			}
		})
	}
}
