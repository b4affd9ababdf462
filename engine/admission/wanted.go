// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Config is what is asked for.
type Config struct {
	Policies     []v1alpha1.AllowancePolicy
	Windows      []v1alpha1.UpgradeAllowance
	Enforcements []v1alpha1.Enforcement
}

// InForce is what is asked for without what is in Shadow mode, for which nothing is
// watched, asked about or guarded.
func (c Config) InForce() Config {
	c.Policies = policy.InForce(c.Policies)

	return c
}

// Names are the kinds that policies in force and windows name, each once.
func (c Config) Names() []kind.Name { return kind.Names(c.InForce().Policies, c.Windows) }
