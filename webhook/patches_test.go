// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/test/corpus"
	"github.com/kausality-io/kausality-crossplane/webhook"
)

// TestNoGateIsMovedThatTheManagerCouldNotMove has a gate open and be recorded with a write, where the manager may patch the
// kind and where it may not: it could neither close it nor take the finalizer away.
func TestNoGateIsMovedThatTheManagerCouldNotMove(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}

	found := 0

	for _, s := range all {
		if s.Name != "opening/with-its-change" && s.Name != "first-record/by-the-function" {
			continue
		}

		found++

		for _, may := range []bool{true, false} {
			req, _ := s.Decision()
			c := &cluster{policies: s.Policies}
			c.live, c.informed = append(c.live, s.Parent), append(c.informed, s.Parent)

			judge := c.judge(t, req.Basis.Now)
			judge.Settings = req.Basis.Settings
			judge.Patches = func(_ context.Context, gr schema.GroupResource) bool { return may || gr != req.Resource }

			review := reviewOf(t, req)
			got := patched(t, review.Object.Raw, post(t, serve(t, &webhook.Mutator{Judge: judge}), review).Patch)

			if moved := bytes.Contains(got, []byte("state: Open")); moved != may {
				t.Errorf("%s: the manager may patch it: %t, the gate is moved: %t", s.Name, may, moved)
			}
		}
	}

	if found != 2 {
		t.Errorf("%d scenarios, want 2", found)
	}
}
