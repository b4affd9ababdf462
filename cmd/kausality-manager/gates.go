// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

// Validate checks what the command line's parser cannot.
func (c *cli) Validate() error {
	if _, err := management.ParseKinds(c.GateWithoutLate); err != nil {
		return fmt.Errorf("--gate-without-late-initialize: %w", err)
	}

	if _, err := management.ParseKinds(c.GateWithoutDrift); err != nil {
		return fmt.Errorf("--gate-without-drift: %w", err)
	}

	if _, err := identity.ParseFields(c.GateIdentity); err != nil {
		return fmt.Errorf("--gate-identity: %w", err)
	}

	if c.MaxWritesInFlight < 1 {
		return fmt.Errorf("--max-writes-in-flight %d: %w", c.MaxWritesInFlight, errNoWrites)
	}

	for _, a := range c.Approvers {
		if !approver.MatchString(a) {
			return fmt.Errorf("--approvers %q: %w", a, errNotAccount)
		}
	}

	return nil
}

// approver is a service account as --approvers names one.
var approver = regexp.MustCompile(`^[^:/\s]+:[^:/\s]+$`)

// errNoWrites is why a value of --max-writes-in-flight is refused.
var errNoWrites = errors.New("it has to be 1 at least")

// errNotAccount is why a value of --approvers is refused.
var errNotAccount = errors.New("a service account is named NAMESPACE:NAME")

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
