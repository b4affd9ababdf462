// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corpus holds scenarios: who changes what under which policies, and
// what is decided. One reader feeds them to the engine and to every entry
// point, so that all of them are shown to decide the same.
//
// A scenario is a txtar file. Its comment says in one line why things are
// decided so. What it asks is one of these files:
//
//	request.yaml  a change of an object, see [Request]
//	gate.yaml     what to do with a managed resource's gate, see [Gate]
//	upkeep.yaml   what the progress of a parent changes, see [Upkeep]
//
// Objects are merge patches (RFC 7386) on one of the objects in base/, so that
// a scenario shows nothing but what it is about:
//
//	old.yaml        on the object that request.yaml names as base
//	new.yaml        on the old object, or on the base where it is created
//	parent.yaml     on the object that request.yaml names as parent
//	namespace.yaml  a whole Namespace
//	object.yaml     of gate.yaml and upkeep.yaml, on their base
//	policies.yaml   AllowancePolicies, UpgradeAllowances and Enforcements
//	params.yaml     whole objects that hold the parameters of policies
//
// What comes of it:
//
//	want.yaml     the decision, see [Want], or the plan, see [Plan]
//	patched.yaml  the merge patch from the new object to the one to be stored
//
// go test ./test/corpus -update writes these two anew: read what changed.
package corpus
