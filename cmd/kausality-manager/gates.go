// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// errNoWrites is why a value of --max-writes-in-flight is refused.
var errNoWrites = errors.New("it has to be 1 at least")

// withoutLate are the kinds whose provider's runtime does not support Observe
// with LateInitialize alone.
func (c *cli) withoutLate() management.Kinds {
	if !c.GateLateInitialize {
		return management.AllKinds()
	}

	kinds, _ := management.ParseKinds(c.GateWithoutLate) // It was validated.

	return kinds
}

// identity is what decides which external object a managed resource stands for.
func (c *cli) identity() identity.Fields {
	out, _ := identity.ParseFields(c.GateIdentity) // It was validated.

	return out
}

// gateOptions are what gates are moved by.
func (c *cli) gateOptions() gate.Options {
	drifting, _ := management.ParseKinds(c.GateWithoutDrift) // It was validated.

	return gate.Options{
		WithoutDrift: drifting, Identity: c.identity(),
		LateInitialize: true, WithoutLateInitialize: c.withoutLate(), Settle: c.Settle, MaxOpen: c.MaxOpen,
		CloseOverdue: c.Overdue == string(v1alpha1.OverdueClose),
	}
}
