// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCalledVulnerabilitiesOfModulesFail(t *testing.T) {
	const (
		known = `{"osv": {"id": "GO-1", "summary": "Bad"}} {"osv": {"id": "GO-2", "summary": "Worse"}}`
		std   = `{"finding": {"osv": "GO-1", "fixed_version": "v1.26.9", "trace": [{"module": "stdlib", "version": "v1.26.8", "function": "Parse"}]}}`
		mod   = `{"finding": {"osv": "GO-2", "fixed_version": "v2.0.1", "trace": [{"module": "example.org/m", "version": "v2.0.0", "function": "Do"}]}}`
		idle  = `{"finding": {"osv": "GO-2", "fixed_version": "v2.0.1", "trace": [{"module": "example.org/m", "version": "v2.0.0"}]}}`
	)

	cases := map[string]struct {
		reason, in, out string
		err             error
	}{
		"Imported": {
			reason: "What nothing calls passes.", in: known + idle,
			out: "0 vulnerabilities of modules are called, 0 of Go's standard library\n",
		},
		"Standard": {
			reason: "Those of Go are printed.", in: known + std + std,
			out: "GO-1: stdlib v1.26.8, fixed in v1.26.9: Bad\n0 vulnerabilities of modules are called, 1 of Go's standard library\n",
		},
		"Module": {
			reason: "Those of a module fail, each once.", in: known + std + idle + mod + mod, err: errVulnerable,
			out: "GO-1: stdlib v1.26.8, fixed in v1.26.9: Bad\nGO-2: example.org/m v2.0.0, fixed in v2.0.1: Worse\n" +
				"1 vulnerabilities of modules are called, 1 of Go's standard library\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder

			if err := run(strings.NewReader(tc.in), &out); !errors.Is(err, tc.err) {
				t.Errorf("%s\nerror: %v, want %v", tc.reason, err, tc.err)
			}

			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	for _, in := range []string{"", "{"} {
		if err := run(strings.NewReader(in), &strings.Builder{}); err == nil {
			t.Errorf("run of %q: no error", in)
		}
	}
}
