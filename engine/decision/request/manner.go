// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Caller is who asks the engine.
type Caller int

const (
	// Mutate is the mutating webhook, or a command: nothing is stored yet, and what is held is put back.
	Mutate Caller = iota
	// Validate is the validating webhook: the new object is as it would be stored, so that nothing of it can be put back.
	Validate
	// Function is the composition function: it says itself what to do about unallowed changes.
	Function
)

// Manner is how a request is asked.
type Manner struct {
	// Caller who asks.
	Caller Caller
	// Action on unallowed changes that the function says; empty where Enforcements do.
	Action v1alpha1.ValidationAction
	// Settles is true where a composition function reports on the parent.
	Settles bool
	// Composing is true where Crossplane applies a managed resource.
	Composing bool
	// Announced is true where Crossplane announces that it will delete the resource it applies: it continues to apply it,
	// with the allowance its deletion gives, until the gate is open for that. decision.Decide gives the composition function what
	// to announce.
	Announced bool
	// Orphans is true where an object is to be deleted and what it owns is to stay.
	Orphans bool
}

// MannerOf is how a request is asked for the API server, by its mutating or its validating webhook, or by the function.
func MannerOf(req *Request, webhook Caller) Manner {
	out := Manner{Caller: webhook, Action: req.Action, Settles: req.ParentSettles, Orphans: req.Orphans}
	if req.Action != "" {
		out.Caller = Function
	}

	return out
}

// External is what is known of the gate of a managed resource, and of what it stands for.
type External struct {
	// Gated is true of an update of a managed resource with a gate, unless its provider or our manager makes it.
	Gated bool
	// Ungated is true where the kind of a new managed resource is known to have no spec.managementPolicies.
	Ungated bool
	// Gates is true where the manager moves them.
	Gates bool
	// LateInitialize is true where the provider supports every set with LateInitialize.
	LateInitialize bool
	// Successor is the composed resource that is to stand for the external object of what is to be deleted; empty for none.
	Successor string
	// Identity is what decides which external object one stands for.
	Identity identity.Fields
}

// Problems collects inputs that cannot be used.
type Problems struct{ List []error }

// Add notes one.
func (p *Problems) Add(err error) { p.List = append(p.List, err) }

// errNoObject is the problem with a request that is about nothing.
var errNoObject = errors.New("cannot decide: the request has neither an old nor a new object")

// Guarded reports whether the request is a change of what a gate stands before,
// by somebody else than those who act for it.
func Guarded(how Manner, outside External) bool { return how.Caller != Function && outside.Gated }

// InObject says of which object an error is.
func InObject(u *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %q: %w", u.GetKind(), resource.Name(u), err)
}
