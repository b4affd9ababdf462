// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate is the state machine of a managed resource's
// spec.managementPolicies: closed while nothing is allowed, open for
// exactly the allowed actions until they have landed in the external system.
//
// Its files:
//   - plan.go: the next move of a gate, and why ([PlanFor]); [Options] of gates; kinds of moves
//   - state.go: the move in each state: new, open, closed, being deleted, paused, mode Audit; moves made at admission ([First], [Opening])
//   - pending.go: allowances that a gate has still to serve, has taken up, or has served
//   - move.go: policies and record of each move; the actions of an opening ([opening]); closing after they landed, or after too long
//   - window.go: gates opened by an UpgradeAllowance alone, without a change ([GivesBy]); their closing at its end
//   - twin.go: two managed resources for one external object ([Twin]): no gate opens for Delete meanwhile
//   - unused.go: end of a permission to delete after maxOpen without a deletion
//   - query.go: questions of others about a gate: deletion allowed now ([MayDelete]) or later, something under way ([Pending])
//   - cause.go: initiators, policies and captured values behind an opening, for messages ([Causes])
//   - owner.go: ownership of spec.managementPolicies by field manager kausality-gate, whoever else applies it ([StayOwned])
//   - left.go: guards for a managed resource without its parent, of a kind in no policy ([Left])
//   - trim.go: fields of a managed resource to keep in a cache ([Trim])
package gate
