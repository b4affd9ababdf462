// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// maxCached is the most policies of which a Cache keeps the compiled form.
const maxCached = 16384

// Cache compiles each policy once, by its content, and remembers those that do
// not compile too. It is safe for concurrent use and bounded.
type Cache struct {
	mu       sync.Mutex
	compiled map[string]outcome
}

type outcome struct {
	policy *Policy
	errs   field.ErrorList
}

// NewCache makes an empty Cache.
func NewCache() *Cache { return &Cache{compiled: map[string]outcome{}} }

// Set compiles policies into a Set. One that does not compile is left out and
// named in the errors.
func (c *Cache) Set(policies []v1alpha1.AllowancePolicy) (*Set, []error) {
	good := make([]*Policy, 0, len(policies))

	var bad []error

	for i := range policies {
		p, err := c.compile(&policies[i])
		if err != nil {
			bad = append(bad, err)

			continue
		}

		good = append(good, p)
	}

	return NewSet(good...), bad
}

func (c *Cache) compile(p *v1alpha1.AllowancePolicy) (*Policy, error) {
	raw, err := json.Marshal(p.Spec)
	if err != nil {
		return nil, fmt.Errorf("cannot read AllowancePolicy %q: %w", p.GetName(), err)
	}

	key := p.GetName() + "\x00" + string(raw)

	c.mu.Lock()
	defer c.mu.Unlock()

	got, ok := c.compiled[key]
	if !ok {
		if len(c.compiled) >= maxCached {
			clear(c.compiled)
		}

		got.policy, got.errs = Compile(p)
		c.compiled[key] = got
	}

	if len(got.errs) > 0 {
		return nil, fmt.Errorf("cannot use AllowancePolicy %q: %w", p.GetName(), got.errs.ToAggregate())
	}

	return got.policy, nil
}
