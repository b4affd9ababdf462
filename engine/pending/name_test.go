// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/engine/pending"
)

func TestANameSaysTheKindAndTheName(t *testing.T) {
	cases := map[string]struct {
		gk, other    schema.GroupKind
		name, prefix string
	}{
		"A short one is whole":                    {gk: schema.GroupKind{Group: "shop.example.org", Kind: "Store"}, name: "corner", prefix: "store-corner-"},
		"Of a long one the beginning":             {gk: schema.GroupKind{Group: "shop.example.org", Kind: "Store"}, name: strings.Repeat("a", 253), prefix: "store-aaaa"},
		"Dots and colons are dashes":              {gk: schema.GroupKind{Group: "g", Kind: "K"}, name: "a.b:c", prefix: "k-a-b-c-"},
		"A cut leaves no dash before the hash":    {gk: schema.GroupKind{Group: "g", Kind: "K"}, name: strings.Repeat("a", 51) + ".b", prefix: "k-" + strings.Repeat("a", 51) + "-"},
		"What is no letter at all goes by a hash": {gk: schema.GroupKind{Group: "g", Kind: "K"}, name: "...", prefix: "k-"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := pending.Name(tc.gk, tc.name)
			if problems := validation.IsDNS1123Label(got); len(problems) > 0 || !strings.HasPrefix(got, tc.prefix) || strings.Contains(got, "--") {
				t.Errorf("%q: %v", got, problems)
			}
		})
	}
}

func TestNoTwoObjectsOfANamespaceHaveTheSameName(t *testing.T) {
	store := schema.GroupKind{Group: "shop.example.org", Kind: "Store"}
	long := strings.Repeat("a", 100)

	seen := map[string]string{}
	for what, got := range map[string]string{
		"one": pending.Name(store, "a"), "another name": pending.Name(store, "b"), "a longer name": pending.Name(store, long+"1"), "one that differs at its end": pending.Name(store, long+"2"),
		"another group": pending.Name(schema.GroupKind{Group: "g", Kind: "Store"}, "a"), "another kind": pending.Name(schema.GroupKind{Group: "shop.example.org", Kind: "Stor"}, "e-a"),
	} {
		if was, ok := seen[got]; ok {
			t.Errorf("%s and %s: %q", was, what, got)
		}

		seen[got] = what
	}
}

func TestAnyNameIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := pending.Name(schema.GroupKind{Group: rapid.String().Draw(t, "group"), Kind: rapid.String().Draw(t, "kind")}, rapid.String().Draw(t, "name"))
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%q: %v", name, problems)
		}
	})
}

func TestWhereAPendingChangeIs(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if got := pending.Namespace(u, "kausality-system"); got != "kausality-system" {
		t.Errorf("of an object in no namespace: %q", got)
	}

	u.SetNamespace("team-a")

	if got := pending.Namespace(u, "kausality-system"); got != "team-a" {
		t.Errorf("of an object in a namespace: %q", got)
	}
}
