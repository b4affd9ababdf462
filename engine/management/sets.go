// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"slices"
)

// Actions of a management policy.
const (
	ActionObserve        = "Observe"
	ActionLateInitialize = "LateInitialize"
	ActionCreate         = "Create"
	ActionUpdate         = "Update"
	ActionDelete         = "Delete"
	// ActionAll stands for all the others.
	ActionAll = "*"
)

// Order is the order in which actions are written.
func Order() []string {
	return []string{ActionObserve, ActionLateInitialize, ActionCreate, ActionUpdate, ActionDelete}
}

// supported returns the sets that crossplane-runtime accepts, as lists in
// [Order]; any other makes a provider report Synced=False. Left out are the
// empty set, which pauses, and *, which is the first one.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0,
// pkg/reconciler/managed/policies.go, defaultSupportedManagementPolicies.
func supported() [][]string {
	return [][]string{
		{ActionObserve, ActionLateInitialize, ActionCreate, ActionUpdate, ActionDelete},
		{ActionObserve},
		{ActionObserve, ActionCreate, ActionUpdate, ActionDelete},
		{ActionObserve, ActionLateInitialize, ActionCreate, ActionUpdate},
		{ActionObserve, ActionCreate, ActionUpdate},
		{ActionObserve, ActionLateInitialize, ActionCreate, ActionDelete},
		{ActionObserve, ActionLateInitialize, ActionCreate},
		{ActionObserve, ActionCreate, ActionDelete},
		{ActionObserve, ActionCreate},
		{ActionObserve, ActionDelete},
		{ActionObserve, ActionUpdate},
		{ActionObserve, ActionLateInitialize},
		{ActionObserve, ActionLateInitialize, ActionUpdate},
	}
}

// Supported reports whether crossplane-runtime accepts a set.
func Supported(set []string) bool {
	set = Normalize(set)

	return slices.ContainsFunc(supported(), func(s []string) bool { return slices.Equal(s, set) })
}

// Moved reports whether a set may be one that a gate was moved to: those are supported,
// and written out.
func Moved(set []string) bool { return !slices.Contains(set, ActionAll) && Supported(set) }

// Normalize writes out *, and brings a set into order without doubles.
func Normalize(set []string) []string {
	if slices.Contains(set, ActionAll) {
		return Order()
	}

	out := make([]string, 0, len(set))

	for _, a := range Order() {
		if slices.Contains(set, a) {
			out = append(out, a)
		}
	}

	return out
}

// acting reports whether an action changes the external system.
func acting(action string) bool {
	return action == ActionCreate || action == ActionUpdate || action == ActionDelete
}

// Acting returns the actions of a set that change the external system.
func Acting(set []string) []string {
	return slices.DeleteFunc(Normalize(set), func(a string) bool { return !acting(a) })
}

// Same reports whether two sets mean the same.
func Same(a, b []string) bool { return slices.Equal(Normalize(a), Normalize(b)) }

// Closed returns the closed set within what the Composition asked for: observe,
// and late-initialize where the provider's runtime supports that together.
func Closed(desired []string, lateInitialize bool) []string {
	if lateInitialize && slices.Contains(Normalize(desired), ActionLateInitialize) {
		return []string{ActionObserve, ActionLateInitialize}
	}

	return []string{ActionObserve}
}

// Open returns the smallest supported set that holds the closed set and the
// asked actions, within what the Composition asked for, and the actions it
// serves. Where no supported set holds the asked actions and no other,
// LateInitialize is left out; where there is still none, Delete waits until
// the others have landed. A gate for what is being deleted has Delete alone instead (engine/gate, opening).
func Open(asked, desired []string, lateInitialize bool) (set, serves []string) {
	within := Normalize(desired)
	wanted := slices.DeleteFunc(Acting(asked), func(a string) bool { return !slices.Contains(within, a) })

	for len(wanted) > 0 {
		for _, base := range [][]string{Closed(desired, lateInitialize), {ActionObserve}} {
			if set := Normalize(slices.Concat(base, wanted)); Supported(set) {
				return set, wanted
			}
		}

		wanted = wanted[:len(wanted)-1]
	}

	return Closed(desired, lateInitialize), nil
}

// Initial returns the set a managed resource is created with: the closed set and
// Create, within what the Composition asked for. What the provider finds there
// already is not to be made anything else.
func Initial(desired []string, lateInitialize bool) []string {
	if len(Normalize(desired)) == 0 {
		return []string{} // Paused.
	}

	set, _ := Open([]string{ActionCreate}, desired, lateInitialize)

	return set
}
