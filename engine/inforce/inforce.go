// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inforce makes of the policies, windows and Enforcements that there
// are what decisions are made by, the same way for all who ask.
package inforce

import (
	"slices"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/window"
)

// Cache compiles each policy and Enforcement once. It is safe for concurrent
// use, and bounded.
type Cache struct {
	policies     *policy.Cache
	enforcements *enforcement.Cache
}

// NewCache makes an empty Cache.
func NewCache() *Cache {
	return &Cache{policies: policy.NewCache(), enforcements: enforcement.NewCache()}
}

// Set is what is in force; not to be modified.
type Set struct {
	// Policies in force.
	Policies *policy.Set
	// Upgrades are the windows that can be used, open or not.
	Upgrades []v1alpha1.UpgradeAllowance
	// Enforcements in force.
	Enforcements []*enforcement.Enforcement
	// Bad are those that do not compile, and count as absent.
	Bad []error
}

// Set compiles what there is.
func (c *Cache) Set(
	policies []v1alpha1.AllowancePolicy, windows []v1alpha1.UpgradeAllowance, enforcements []v1alpha1.Enforcement,
) *Set {
	out := &Set{}

	var badWindows, bad []error

	out.Policies, out.Bad = c.policies.Set(policies)
	out.Upgrades, badWindows = window.Valid(windows)
	out.Enforcements, bad = c.enforcements.List(enforcements)
	out.Bad = slices.Concat(out.Bad, badWindows, bad)

	return out
}

// Into has a request judged by what is in force.
func (s *Set) Into(req *decision.Request) {
	req.Policies, req.Upgrades, req.Enforcements = s.Policies, s.Upgrades, s.Enforcements
}
