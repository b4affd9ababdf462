// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policytest reads and decides scenarios: who changes what under which
// policies, and what is decided. kubectl kausality test tests those of users with
// it, and test/corpus those that the engine and every entry point are held to: the
// format and the reader are the same.
//
// # Scenarios
//
// A scenario is a txtar file, NAME.txtar. Its comment says in one line why things are
// decided so. What it asks is one of these files:
//
//	request.yaml  a change of an object, see [Request]
//	gate.yaml     what to do with a managed resource's gate, see [Gate]
//	upkeep.yaml   what the progress of a parent changes, see [Upkeep]
//
// Objects are merge patches (RFC 7386) on base objects, so that a scenario shows
// nothing but what it is about:
//
//	old.yaml        on the object that request.yaml names as base; none of CREATE
//	new.yaml        on the old object, or on the base where it is created; none of DELETE
//	parent.yaml     on the object that request.yaml names as parent, or as another
//	                scenario leaves it (parentAfter)
//	namespace.yaml  a whole Namespace
//	object.yaml     of gate.yaml and upkeep.yaml, on their base
//	policies.yaml   AllowancePolicies, AllowanceBindings, UpgradeAllowances and Enforcements
//	params.yaml     whole objects that hold the parameters of policies
//
// A base object may be whole in old.yaml or new.yaml as well; then none is named.
//
// What comes of it:
//
//	want.yaml     the decision, see [Want]; the plan, see [Plan]; or of upkeep the annotations
//	patched.yaml  the merge patch from the new object to the one to be stored
//	texts.yaml    the messages for people, see [Texts]
//
// # Names
//
// base, parent and policies name what is in other files. A NAME is the file base/NAME.yaml in the
// scenario's directory, or in the nearest directory above it that has one, up to the one that
// is tested. With a slash, or one of the endings .yaml, .yml and .json, it is a path, from the
// scenario's directory: ../policies.yaml. A base object is the only one of its file.
//
// policies may be paths of directories as well: their *.yaml, *.yml and *.json are read but for
// kustomization.yaml, and none below. Of files with policies every document is read, and the items of
// lists. Objects of other API groups are skipped. One of kausality.io that is neither an
// AllowancePolicy, AllowanceBinding, UpgradeAllowance nor Enforcement is an error, and so are unknown
// fields, a document that is no object, the same name twice, and a file or a directory with nothing of
// ours. policies.yaml of a scenario has nothing but these four, where apiVersion may be left out.
//
// A policy that does not compile is an error, unless want.yaml says which problems there are to be
// (or what is broken of a gate): then it counts as absent, as it does in a cluster.
//
// # Defaults
//
// A directory may have a file defaults.yaml. It says what request.yaml may say, for the scenarios in
// that directory and below whose own does not; of several the nearest counts, field by field.
// Paths in it are from its directory. To gate.yaml it gives policies and now, and exact and enforce to all.
//
// # What is wanted
//
// want.yaml need only say what matters. Each field that it gives must be equal; what it leaves out is not
// compared. A list has as many elements as want.yaml gives, in that order, and they are compared likewise. An
// empty mapping or list is equal to an empty one alone, and so is "" or false to what is not there.
// patched.yaml and texts.yaml are compared in the same way, where they are there. So this is enough of many:
//
//	allowed: false
//
// and this says more:
//
//	outcome: Held
//	findings:
//	- {field: spec.size, lacks: [{what: Subject}]}
//
// With exact: true, in request.yaml or defaults.yaml, the three say everything, each its own part: want.yaml and
// patched.yaml have the decision without messages, texts.yaml has the messages. So a new wording does
// not hide another decision.
//
// A scenario without want.yaml fails, and prints what is decided. kubectl kausality test --update writes
// want.yaml, and patched.yaml and texts.yaml where they are there, anew: with the fields that they have.
package policytest
