// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

	var (
		bad    []error
		broken []Broken
	)

	for i := range policies {
		p, err := c.compiled.Get(&policies[i], policies[i].GetName(), policies[i].Spec)
		if err != nil {
			bad = append(bad, err)

			if inShadow(&policies[i].Spec) {
				continue
			}

			broken = append(broken, Broken{
				Name: policies[i].GetName(), Generation: policies[i].GetGeneration(), Spec: &policies[i].Spec, Fields: wrongFields(err),
			})

			continue
		}

		good = append(good, p.of(policies[i].GetGeneration()))
	}

	slices.SortFunc(broken, func(a, b Broken) int { return strings.Compare(a.Name, b.Name) })

	out := NewSet(good...)
	out.broken = broken

	if out.shadow != nil {
		out.shadow.broken = broken
	}

	return out, bad
}

// wrongFields are those of a policy that do not compile.
func wrongFields(err error) []string {
	var (
		list utilerrors.Aggregate
		out  []string
	)

	if !errors.As(err, &list) {
		return nil
	}

	for _, e := range list.Errors() {
		if f := (*field.Error)(nil); errors.As(e, &f) {
			out = append(out, f.Field)
		}
	}

	return out
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
