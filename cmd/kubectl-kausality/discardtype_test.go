// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// TestASchemaSaysWhatAValueWas also where nothing is there any more, or something else.
func TestASchemaSaysWhatAValueWas(t *testing.T) {
	t.Parallel()

	sch := &spec.Schema{}
	if err := yaml.Unmarshal([]byte(`
properties:
  size: {type: integer}
  ratio: {type: number}
  name: {type: string}
  enabled: {type: boolean}
  port: {x-kubernetes-int-or-string: true}
  memory: {oneOf: [{type: string}, {type: number}]}
  labels: {type: object, additionalProperties: {type: string}}
  any: {type: object, x-kubernetes-preserve-unknown-fields: true}
  wrapped: {allOf: [{type: object, properties: {count: {type: integer}}}]}
  list: {type: array, items: {type: object, properties: {count: {type: integer}}}}
`), sch); err != nil {
		t.Fatal(err)
	}

	object := map[string]any{"port": int64(80), "memory": "1Gi", "labels": map[string]any{"b": "x"}, "any": map[string]any{"m": map[string]any{}, "n": int64(1)}}

	for name, tc := range map[string]struct {
		field, from string
		want        string
		err         error
	}{
		"Integer":             {field: "size", from: "17", want: "17"},
		"WholeNumber":         {field: "ratio", from: "17", want: "17"},
		"TextOfDigits":        {field: "name", from: "17", want: `"17"`},
		"Boolean":             {field: "enabled", from: "true", want: "true"},
		"TextOfAMap":          {field: "labels.a", from: "true", want: `"true"`},
		"Default":             {field: "wrapped.count", from: "3", want: "3"},
		"Element":             {field: "list[0].count", from: "3", want: "3"},
		"OfAnotherType":       {field: "size", from: "large", err: errNoType},
		"OfATypeThatWas":      {field: "enabled", from: "17", err: errNoType},
		"IntOrString":         {field: "port", from: "8080", err: errTwoWays},
		"IntOrStringText":     {field: "port", from: "http", want: `"http"`},
		"Quantity":            {field: "memory", from: "1", err: errTwoWays},
		"UnknownLikeWhatIs":   {field: "any.n", from: "17", want: "17"},
		"UnknownUnlikeWhatIs": {field: "any.m", from: "17", err: errTwoWays},
		"UnknownAndGone":      {field: "any.o", from: "17", err: errTwoWays},
		"Unlisted":            {field: "other", from: "17", err: errTwoWays},
	} {
		got, err := previous(object, v1alpha1.HeldChange{Field: tc.field, From: tc.from, Stored: &v1alpha1.StoredChange{}}, sch)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", name, err, tc.err)
		}

		if raw, _ := json.Marshal(got.to); tc.err == nil && string(raw) != tc.want { //nolint:errchkjson // Of JSON.
			t.Errorf("%s: %s, want %s", name, raw, tc.want)
		}
	}
}
