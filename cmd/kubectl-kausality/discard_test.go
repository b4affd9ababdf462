// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// editedClaim is a Claim with edits.
func editedClaim(t *testing.T, edits string) *unstructured.Unstructured {
	t.Helper()

	u := parse(t, `
apiVersion: shop.example.org/v1
kind: Claim
metadata: {name: db, namespace: team, uid: claim, resourceVersion: "7"}
spec:
  size: large
  count: 9007199254740993
  nodes: 3
  rules: [{port: 80}, {port: 443}, {port: 8443}]
  password: hunter2
  resourceRef: {apiVersion: shop.example.org/v1, kind: Database, name: db-x}
`)
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationHeld: edits})

	return u
}

// edit is one entry of the annotation: what is after the semicolon is of what is stored.
func edit(field, rest string) string {
	rest, stored, _ := strings.Cut(rest, "; ")

	return `{"field":"` + field + `","cause":{"type":"Edit","user":"eve@example.com","since":"2026-11-22T09:30:00Z"},"stored":{` + stored + `}` + rest + `}`
}

func TestWhatWasEditedIsPutBack(t *testing.T) {
	t.Parallel()

	size := edit("spec.size", `,"from":"small"`)

	for name, tc := range map[string]struct {
		edits  []string
		args   []string
		opts   discardOptions
		answer string
		want   string
		writes []string
		err    error
		code   int
	}{
		"Text": {
			edits: []string{size}, answer: "y\n",
			want: `Claim team/db
  spec.size  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  - large
  + small
Put back 1 field of Claim/db? [y/N] 1 field of Claim team/db put back
`,
			writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"size":"small"}}`},
		},
		"OfWhatIsBelow": {
			edits: []string{size}, args: []string{"instance/db-1"}, opts: discardOptions{yes: true},
			writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"size":"small"}}`},
		},
		"OfItsPendingChange": {
			edits: []string{size}, args: []string{"pendingchange/claim-db-" + pendingHash}, opts: discardOptions{yes: true},
			writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"size":"small"}}`},
		},
		"NumbersAndFieldsThatWereNotThere": {
			edits: []string{edit("spec.nodes", `,"from":"2"`), edit("spec.size", ""), edit("spec.count", `,"from":"9007199254740995"`)},
			opts:  discardOptions{yes: true},
			want: `Claim team/db
  spec.count  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  - 9007199254740993
  + 9007199254740995
  spec.nodes  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  - 3
  + 2
  spec.size  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  - large
3 fields of Claim team/db put back
`,
			writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"count":9007199254740995,"nodes":2,"size":null}}`},
		},
		"ElementsOfLists": {
			edits: []string{edit("spec.rules[1].port", `,"from":"444"`)},
			opts:  discardOptions{yes: true}, writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"rules":[{"port":80},{"port":444},{"port":8443}]}}`},
		},
		"ElementsThatWereNotThere": {
			edits: []string{edit("spec.rules[2].port", "")}, opts: discardOptions{yes: true}, err: errSomeStay, code: exitError,
			want: "Claim team/db\n  spec.rules[2].port  (edited by eve@example.com at 2026-11-22T09:30:00Z)\n  - 8443\n" +
				"Cannot be put back: spec.rules[2].port: the list that it was in is another one by now\n",
		},
		"WhatWasRemoved": {
			edits: []string{edit("spec.engine.name", `,"from":"postgres"`), edit("spec.version", `,"from":"14.10"`)}, opts: discardOptions{yes: true},
			writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"engine":{"name":"postgres"},"version":"14.10"}}`},
		},
		"WhatCouldBeTextOrANumber": {
			edits: []string{edit("spec.version", `,"from":"14"`)}, opts: discardOptions{yes: true}, err: errSomeStay, code: exitError,
			want: "Claim team/db\nCannot be put back: spec.version: the value from before can be read as text, and as something else, " +
				"and no value is there that would tell which\n",
		},
		"NothingWhereNotAllCanBe": {
			edits: []string{
				size, edit("spec.password", `,"masked":true`), edit("spec.nodes", `,"from":"[1..."; "from":"ab"`), edit("(more)", `,"masked":true`),
				edit("spec.rules[7].port", `,"from":"x"`),
			},
			opts: discardOptions{yes: true}, err: errSomeStay, code: exitError,
			want: `Claim team/db
  spec.rules[7].port  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  + x
  spec.size  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  - large
  + small
Cannot be put back: (more): there are more edits than are recorded
Cannot be put back: spec.nodes: the value from before is long, and only its beginning is recorded
Cannot be put back: spec.password: the value from before may be a secret, and is not recorded
`,
		},
		"SomeAlone": {
			edits: []string{size, edit("spec.password", `,"masked":true`)}, opts: discardOptions{yes: true, fields: []string{"spec.size"}},
			writes: []string{`patch db {"metadata":{"resourceVersion":"7"},"spec":{"size":"small"}}`},
		},
		"NoSuchEdit": {
			edits: []string{size}, opts: discardOptions{yes: true, fields: []string{"spec.nodes"}}, err: errNoEdit, code: exitError,
		},
		"NoEdit": {want: "No edit of Claim team/db is recorded that is not allowed.\n"},
		"TakenBackAlready": {
			edits: []string{edit("spec.size", `,"from":"large"`)}, want: "Claim team/db\nClaim team/db has the values from before already.\n",
		},
		"NotConfirmed": {edits: []string{size}, answer: "no\n", err: errDeclined, code: exitError},
		"NoTerminal":   {edits: []string{size}, err: errNoTerminal, code: exitUsage},
		"ADryRun": {
			edits: []string{size}, opts: discardOptions{yes: true, clusterOptions: clusterOptions{dry: dryRun{mode: dryClient}}},
			want: `Claim team/db
  spec.size  (edited by eve@example.com at 2026-11-22T09:30:00Z)
  - large
  + small
1 field of Claim team/db would have the value from before; nothing was changed
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := fakeCluster(editedClaim(t, "["+strings.Join(tc.edits, ",")+"]"), parse(t, pendingXR), parse(t, pendingInstance), parse(t, pendingDB))
			c.dry = tc.opts.dry

			var out bytes.Buffer

			d := discarder{cluster: c, opts: tc.opts, out: &out, show: &out, asker: asker{out: &out}, schemas: noSchema}
			if tc.answer != "" {
				d.asker.in = bufio.NewReader(strings.NewReader(tc.answer))
			}

			if tc.args == nil {
				tc.args = []string{"claim/db"}
			}

			err := d.discard(t.Context(), tc.args)
			if !errors.Is(err, tc.err) || exitCode(err) != tc.code {
				t.Errorf("%v (exit code %d), want %v (%d)", err, exitCode(err), tc.err, tc.code)
			}

			if diff := cmp.Diff(tc.want, out.String()); tc.want != "" && diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}

			if diff := cmp.Diff(tc.writes, writes(client)); diff != "" {
				t.Errorf("writes: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestAValueFromBeforeIsWhatItWas by what is there now.
func TestAValueFromBeforeIsWhatItWas(t *testing.T) {
	t.Parallel()

	object := map[string]any{"text": "x", "number": int64(1), "float": 1.5, "object": map[string]any{}, "null": nil}

	for name, tc := range map[string]struct {
		field, from string
		want        string
		err         error
	}{
		"TextOfDigits":           {field: "text", from: "14", want: `"14"`},
		"Number":                 {field: "number", from: "14", want: `14`},
		"TextWhereANumberIs":     {field: "number", from: "14.10", want: `"14.10"`},
		"QuotesArePartOfText":    {field: "number", from: `"a"`, want: `"\"a\""`},
		"NullIsAWord":            {field: "number", from: "null", want: `"null"`},
		"Object":                 {field: "object", from: `{"a":[1,true]}`, want: `{"a":[1,true]}`},
		"ObjectWhereANumberIs":   {field: "number", from: `{"a":[1,true]}`, err: errTwoWays},
		"WholeNumber":            {field: "float", from: "14", want: "14"},
		"ObjectThatIsNotCompact": {field: "number", from: `{"a": 1}`, want: `"{\"a\": 1}"`},
		"TextThatIsGone":         {field: "none", from: "postgres", want: `"postgres"`},
		"NumberThatIsGone":       {field: "none", from: "14", err: errTwoWays},
		"NumberThatIsNull":       {field: "null", from: "true", err: errTwoWays},
		"NoPath":                 {field: "a[", from: "x", err: errNoPath},
	} {
		got, err := previous(object, v1alpha1.HeldChange{Field: tc.field, From: tc.from, Stored: &v1alpha1.StoredChange{}}, nil)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", name, err, tc.err)
		}

		if raw, _ := json.Marshal(got.to); tc.err == nil && string(raw) != tc.want { //nolint:errchkjson // Of JSON.
			t.Errorf("%s: %s, want %s", name, raw, tc.want)
		}
	}
}

var errNoSchema = errors.New("no schema")

func noSchema(schema.GroupVersionKind) (*spec.Schema, error) { return nil, errNoSchema }
