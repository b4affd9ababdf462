// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
)

const composedByKCL = `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: caches}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Cache}
  mode: Pipeline
  pipeline: [{step: compose, functionRef: {name: function-kcl}}]
`

// cacheLog is a log of a Cache of which somebody changed the memory, and of what the function
// wanted then.
func cacheLog(t *testing.T) string {
	t.Helper()

	header := decisionlog.Header{APIVersion: decisionlog.Version, Kind: decisionlog.KindDecision}
	cache := func(generation int, memory string) decisionlog.Object {
		return decisionlog.Object{
			"apiVersion": "example.org/v1", "kind": "Cache", "metadata": map[string]any{"name": "sessions", "namespace": "shop", "generation": generation},
			"spec": map[string]any{"memory": memory, "crossplane": map[string]any{"compositionRef": map[string]any{"name": "caches"}}},
		}
	}
	server := func(size, password string) decisionlog.Object {
		return decisionlog.Object{
			"apiVersion": "cache.example.org/v1", "kind": "Server", "metadata": map[string]any{"name": "sessions-server"},
			"spec": map[string]any{"forProvider": map[string]any{"size": size, "password": password}},
		}
	}

	var out strings.Builder

	for _, line := range []any{
		decisionlog.Decision{
			Header: header, By: decisionlog.By{Part: decisionlog.PartMutate}, Operation: request.OperationUpdate, User: decisionlog.User{Name: "anna"},
			Old: cache(1, "1Gi"), New: cache(1, "2Gi"), Outcome: decisionlog.Outcome{Do: decision.Allow},
		},
		decisionlog.Decision{
			Header: header, By: decisionlog.By{Part: decisionlog.PartFunction}, Operation: request.OperationUpdate, Parent: cache(2, "2Gi"),
			Old: server("small", "(masked)"), New: server("large", "(masked 2)"), Masked: true, Outcome: decisionlog.Outcome{Findings: []decisionlog.Finding{
				{Field: "spec.forProvider.password", Verdict: finding.Unallowed}, {Field: "spec.forProvider.size", Verdict: finding.Unallowed},
			}},
		},
		decisionlog.Dropped{Header: decisionlog.Header{APIVersion: decisionlog.Version, Kind: decisionlog.KindDropped}, Decisions: 2},
	} {
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}

		out.Write(append(raw, '\n'))
	}

	return out.String() + "{}\n"
}

func TestSuggestReadsLogsWithoutACluster(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "nothing")

	const composition, log = "composition.yaml", "a.log"

	for path, text := range map[string]string{composition: composedByKCL, log: cacheLog(t)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	out, warnings, err := suggesting(t, "", "-f", composition, "--from-log", log, "--subject=Group=platform-team")
	if exitCode(err) != exitFinding {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}

	for _, want := range []string{
		"# - seen once of Cache shop/sessions, changed by anna, at a.log:2: spec.memory -> spec.forProvider.size\n",
		"    fields: [spec.memory]\n",
		"  - {apiGroup: cache.example.org, kind: Server, mutations: [spec.forProvider.password, spec.forProvider.size]}\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}

	if strings.Contains(out, "masked") || strings.Contains(out, "Gi") {
		t.Errorf("it prints a value:\n%s", out)
	}

	for _, want := range []string{
		"2 decisions were left out of the logs: what they would show is not known\n", log + ":4: it is no line of a log of decisions\n",
		"what function-kcl makes of the XR's fields is not known",
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("it does not warn %q:\n%s", want, warnings)
		}
	}

	if _, warnings, _ = suggesting(t, "", "-f", composition, "--from-log", "no-such-log"); !strings.Contains(warnings, "no-such-log: open no-such-log: no such file") {
		t.Errorf("it warns %q", warnings)
	}
}
