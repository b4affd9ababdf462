// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

func TestOfUpdatesOfFunctionsThoseOfTheDayBeforeCount(t *testing.T) {
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	revision := func(name, function, state, number, made string) unstructured.Unstructured {
		return *fixture.Parse(t, "{apiVersion: pkg.crossplane.io/v1, kind: FunctionRevision, metadata: {name: "+name+
			", labels: {pkg.crossplane.io/package: "+function+"}, creationTimestamp: \""+made+"\"}, spec: {desiredState: "+state+", revision: "+number+"}}")
	}

	got := pending.Updates([]unstructured.Unstructured{
		revision("b-2", "function-b", "Active", "2", "2026-03-04T12:00:00Z"),
		revision("a-3", "function-a", "Active", "3", "2026-03-05T12:00:00Z"),
		revision("a-2", "function-a", "Inactive", "2", "2026-03-05T11:00:00Z"),
		revision("first-1", "function-first", "Active", "1", "2026-03-05T11:00:00Z"),
		revision("old-2", "function-old", "Active", "2", "2026-03-04T11:59:59Z"),
		revision("new-2", "function-new", "Active", "2", "2026-03-05T12:00:01Z"),
		revision("other-2", "function-other", "Active", "2", "2026-03-05T11:00:00Z"),
	}, []string{"function-a", "function-b", "function-first", "function-old", "function-new"}, now)

	if diff := cmp.Diff([]string{"a-3", "b-2"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestOnlySomeUpdatesOfFunctionsAreNamed(t *testing.T) {
	functions := []string{"a", "b", "c", "d", "e", "f", "g"}
	revisions := make([]unstructured.Unstructured, 0, len(functions))

	for _, name := range functions {
		revisions = append(revisions, *fixture.Parse(t, "{apiVersion: pkg.crossplane.io/v1, kind: FunctionRevision, metadata: {name: "+name+
			"-2, labels: {pkg.crossplane.io/package: "+name+"}, creationTimestamp: \"2026-03-05T11:00:00Z\"}, spec: {desiredState: Active, revision: 2}}"))
	}

	if got := pending.Updates(revisions, functions, time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)); len(got) != 5 {
		t.Errorf("%v", got)
	}
}
