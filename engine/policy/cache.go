// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/internal/memo"
)

// Cache compiles each policy once, by its content, and remembers those that do
// not compile too. It is safe for concurrent use and bounded.
type Cache struct {
	compiled *memo.Memo[*v1alpha1.AllowancePolicy, *Policy]
}

// NewCache makes an empty Cache.
func NewCache() *Cache { return &Cache{compiled: memo.New("AllowancePolicy", Compile)} }

// Set compiles policies into a Set. One that does not compile is left out and
// named in the errors.
func (c *Cache) Set(policies []v1alpha1.AllowancePolicy) (*Set, []error) {
	good := make([]*Policy, 0, len(policies))

	var bad []error

	for i := range policies {
		p, err := c.compiled.Get(&policies[i], policies[i].GetName(), policies[i].Spec)
		if err != nil {
			bad = append(bad, err)

			continue
		}

		good = append(good, p)
	}

	return NewSet(good...), bad
}

// Gate returns what a policy says of the gates that its allowances open; nil
// for nothing. That other parts of the policy do not compile does not matter to
// it.
func (c *Cache) Gate(p *v1alpha1.AllowancePolicy) *Gate {
	if p.Spec.Gate == nil {
		return nil
	}

	compiled, err := c.compiled.Get(p, p.GetName(), p.Spec)
	if compiled == nil {
		return &Gate{Broken: err}
	}

	return compiled.gate
}
