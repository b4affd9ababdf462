// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/test/corpus"
)

// TestThePluginShowsNoCredential prints what was decided of objects with
// credentials, and what an earlier version recorded, for people and for programs.
func TestThePluginShowsNoCredential(t *testing.T) {
	all, err := corpus.Planting()
	if err != nil {
		t.Fatal(err)
	}

	for _, s := range all {
		if s.Request == nil {
			continue
		}

		req, _ := s.Decision()

		for _, u := range []*unstructured.Unstructured{s.Old, decision.Decide(req).Object} {
			if u == nil {
				continue
			}

			t.Run(s.Name, func(t *testing.T) {
				doc, err := documentOf(u, related{})
				if err != nil {
					t.Fatal(err)
				}

				text := render(u, &doc, true)

				raw, err := json.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}

				for _, said := range []string{text, string(raw)} {
					if corpus.Leaks(said) {
						t.Errorf("it tells a credential: %s", said)
					}
				}
			})
		}
	}
}
