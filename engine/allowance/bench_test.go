// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// usualAllowances is an annotation as it is on an XR whose Claim was changed.
const usualAllowances = `- kind: Instance
  mutation: spec.forProvider.engineVersion
  generation: 12
  initiator: hans@example.com
  policy: database-to-instance
  trace:
  - kind: DatabaseClaim
    name: my-database
    generation: 5
    field: spec.version
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.version
- relation: External
  mutations:
  - Update
  generation: 12
  initiator: hans@example.com
  policy: database-to-instance
  trace:
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.version
`

// cachedByText reads annotations by the YAML library, each text once. Of what it has it
// returns a copy, for callers change what they read.
type cachedByText struct {
	mu   sync.Mutex
	seen map[string][]v1alpha1.Allowance
}

func (c *cachedByText) read(tb testing.TB, text string) []v1alpha1.Allowance {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()

	list, ok := c.seen[text]
	if !ok {
		if err := yaml.Unmarshal([]byte(text), &list); err != nil {
			tb.Fatal(err)
		}

		c.seen[text] = list
	}

	out := make([]v1alpha1.Allowance, len(list))
	for i := range list {
		list[i].DeepCopyInto(&out[i])
	}

	return out
}

// BenchmarkAnnotation measures what the plain reader and writer save, and what a cache
// before the YAML library would.
func BenchmarkAnnotation(b *testing.B) {
	var list []v1alpha1.Allowance
	if !allowance.ReadPlain(usualAllowances, &list) {
		b.Fatal("it reads the long way")
	}

	for name, run := range map[string]func(b *testing.B){
		"read/by=plain": func(b *testing.B) {
			for b.Loop() {
				var out []v1alpha1.Allowance
				if !allowance.ReadPlain(usualAllowances, &out) {
					b.Fatal("it reads the long way")
				}
			}
		},
		"read/by=library": func(b *testing.B) {
			for b.Loop() {
				var out []v1alpha1.Allowance
				if err := yaml.Unmarshal([]byte(usualAllowances), &out); err != nil {
					b.Fatal(err)
				}
			}
		},
		"read/by=cache-hit": func(b *testing.B) {
			c := cachedByText{seen: map[string][]v1alpha1.Allowance{}}
			for b.Loop() {
				c.read(b, usualAllowances)
			}
		},
		"read/by=cache-miss": func(b *testing.B) {
			c := cachedByText{seen: map[string][]v1alpha1.Allowance{}}
			for b.Loop() {
				c.read(b, usualAllowances)
				clear(c.seen)
			}
		},
		"write/by=plain": func(b *testing.B) {
			for b.Loop() {
				if _, ok := allowance.WritePlain(list); !ok {
					b.Fatal("it is written the long way")
				}
			}
		},
		"write/by=library": func(b *testing.B) {
			for b.Loop() {
				if _, err := allowance.Format(list); err != nil {
					b.Fatal(err)
				}
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run(b)
		})
	}
}
