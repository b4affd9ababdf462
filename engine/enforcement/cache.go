// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/internal/memo"
)

// Cache compiles each Enforcement once, by its content, and remembers those
// that do not compile too. It is safe for concurrent use and bounded.
type Cache struct {
	compiled *memo.Memo[*v1alpha1.Enforcement, *Enforcement]
}

// NewCache makes an empty Cache.
func NewCache() *Cache { return &Cache{compiled: memo.New("Enforcement", Compile)} }

// List compiles Enforcements. One that does not compile is named in the errors.
// It stays in the list where its failure policy is Fail, as a broken one; where
// that is Ignore it enforces nothing and is left out.
func (c *Cache) List(list []v1alpha1.Enforcement) ([]*Enforcement, []error) {
	out := make([]*Enforcement, 0, len(list))

	var bad []error

	for i := range list {
		e, err := c.compiled.Get(&list[i], list[i].GetName(), list[i].Spec)
		if err != nil {
			bad = append(bad, err)
		}

		if e.fails() {
			out = append(out, e.of(list[i].GetGeneration()))
		}
	}

	return out, bad
}
