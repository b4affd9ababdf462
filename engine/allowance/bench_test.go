// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"errors"
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
  id: "12.0"
  initiator: hans@example.com
  policy: database-to-instance
  source:
    type: Policy
    name: database-to-instance
    field: spec.version
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
  id: "12.0"
  initiator: hans@example.com
  policy: database-to-instance
  source:
    type: Policy
    name: database-to-instance
    field: spec.version
  trace:
  - kind: XDatabase
    name: my-database-xyz
    generation: 12
    field: spec.version
`

var (
	errLong = errors.New("the YAML library is needed")
	errRead = errors.New("not all is read")
)

// cachedByText reads annotations by the YAML library, each text once. Of what it has it
// returns a copy, for callers change what they read.
type cachedByText struct {
	mu   sync.Mutex
	seen map[string][]v1alpha1.Allowance
}

func (c *cachedByText) read(text string) ([]v1alpha1.Allowance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	list, ok := c.seen[text]
	if !ok {
		if err := yaml.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}

		c.seen[text] = list
	}

	out := make([]v1alpha1.Allowance, len(list))
	for i := range list {
		list[i].DeepCopyInto(&out[i])
	}

	return out, nil
}

// BenchmarkAnnotation measures what the plain reader and writer save, and what a cache
// before the YAML library would.
func BenchmarkAnnotation(b *testing.B) {
	var list []v1alpha1.Allowance
	if !allowance.ReadPlain(usualAllowances, &list) {
		b.Fatal(errLong)
	}

	hit := cachedByText{seen: map[string][]v1alpha1.Allowance{}}
	miss := cachedByText{seen: map[string][]v1alpha1.Allowance{}}

	for name, run := range map[string]func() error{
		"read/by=plain": func() error {
			var out []v1alpha1.Allowance
			if !allowance.ReadPlain(usualAllowances, &out) {
				return errLong
			}

			return nil
		},
		"read/by=library": func() error {
			var out []v1alpha1.Allowance

			return yaml.Unmarshal([]byte(usualAllowances), &out)
		},
		"read/by=cache-hit": func() error {
			out, err := hit.read(usualAllowances)
			if len(out) != len(list) {
				return errors.Join(errRead, err)
			}

			return err
		},
		"read/by=cache-miss": func() error {
			clear(miss.seen)
			out, err := miss.read(usualAllowances)
			if len(out) != len(list) {
				return errors.Join(errRead, err)
			}

			return err
		},
		"write/by=plain": func() error {
			if _, ok := allowance.WritePlain(list); !ok {
				return errLong
			}

			return nil
		},
		"write/by=library": func() error {
			_, err := allowance.Format(list)

			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
