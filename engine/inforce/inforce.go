// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inforce makes of the policies, windows and Enforcements that there
// are what decisions are made by, the same way for all who ask.
package inforce

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/internal/memo"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// Cache compiles each policy, window and Enforcement once. It is safe for concurrent
// use, and bounded.
type Cache struct {
	policies     *policy.Cache
	bindings     *memo.Memo[*v1alpha1.AllowanceBinding, *policy.Binding]
	windows      *memo.Memo[*v1alpha1.UpgradeAllowance, *allowance.WindowTerms]
	enforcements *enforcement.Cache
}

// NewCache makes an empty Cache.
func NewCache() *Cache {
	return &Cache{
		policies: policy.NewCache(), bindings: memo.New(v1alpha1.KindBinding, policy.CompileBinding),
		windows: memo.New(v1alpha1.KindUpgrade, terms), enforcements: enforcement.NewCache(),
	}
}

// Objects are those that decisions are made by, as they are stored.
type Objects struct {
	Policies []v1alpha1.AllowancePolicy
	// Bindings say who may initiate; who decides nothing that a chain starts with needs none.
	Bindings     []v1alpha1.AllowanceBinding
	Windows      []v1alpha1.UpgradeAllowance
	Enforcements []v1alpha1.Enforcement
}

// Set is what is in force; not to be modified.
type Set struct {
	// Policies in force, and who may initiate by them besides their own subjects.
	Policies *policy.Set
	Bindings *policy.Bindings
	// Upgrades are the windows that can be used, open or not.
	Upgrades []*allowance.Window
	// Enforcements in force.
	Enforcements []*enforcement.Enforcement
	// Bad are those that do not compile, and count as absent.
	Bad []error
}

// Set compiles what there is.
func (c *Cache) Set(in Objects) *Set {
	out := &Set{}

	var badBindings, badWindows, bad []error

	out.Policies, out.Bad = c.policies.Set(in.Policies)
	out.Bindings, badBindings = c.bind(in.Bindings)
	out.Upgrades, badWindows = c.open(in.Windows)
	out.Enforcements, bad = c.enforcements.List(in.Enforcements)
	out.Bad = slices.Concat(out.Bad, badBindings, badWindows, bad)

	return out
}

// bind compiles bindings. One that is being deleted counts as absent, and one that cannot
// be used does, which is an error.
func (c *Cache) bind(list []v1alpha1.AllowanceBinding) (*policy.Bindings, []error) {
	var bad []error

	good := make([]*policy.Binding, 0, len(list))

	for i := range list {
		if list[i].GetDeletionTimestamp() != nil {
			continue
		}

		b, err := c.bindings.Get(&list[i], list[i].GetNamespace()+"/"+list[i].GetName(), list[i].Spec)
		if err != nil {
			bad = append(bad, err)

			continue
		}

		good = append(good, b)
	}

	return policy.NewBindings(good...), bad
}

// open compiles windows. Those that cannot be used count as absent, and are errors.
func (c *Cache) open(list []v1alpha1.UpgradeAllowance) (out []*allowance.Window, bad []error) {
	for i := range list {
		t, err := c.windows.Get(&list[i], list[i].GetName(), list[i].Spec)
		if err != nil {
			bad = append(bad, err)

			continue
		}

		out = append(out, t.Of(&list[i]))
	}

	return out, bad
}

// terms compiles a window.
func terms(u *v1alpha1.UpgradeAllowance) (*allowance.WindowTerms, field.ErrorList) {
	if errs := upgradeallowance.Validate(u); len(errs) > 0 {
		return nil, errs
	}

	t, err := allowance.TermsOf(u)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}

	return t, nil
}

// Basis is what requests are decided by at a moment, by the settings of an
// installation.
func (s *Set) Basis(settings request.Settings, now time.Time) request.Basis {
	return request.Basis{
		Policies: s.Policies, Bindings: s.Bindings, Upgrades: s.Upgrades, Enforcements: s.Enforcements, Settings: settings, Now: now,
	}
}
