// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
)

// side is what a patch reads from or writes to.
type side int

// Sides of patches.
const (
	composite side = iota
	composedSide
	environment
)

// place is a field of one of them.
type place struct {
	side side
	// resource that it is of, on [composedSide].
	resource *composed
	path     change.Pattern
}

// fields of an object.
const (
	fieldSpec     = "spec"
	fieldStatus   = "status"
	fieldMetadata = "metadata"
)

// below reports whether a path is below these fields, or is them.
func below(path change.Path, fields ...string) bool {
	if len(path) < len(fields) {
		return false
	}

	for i, f := range fields {
		if path[i].Type != fieldpath.SegmentField || path[i].Field != f {
			return false
		}
	}

	return true
}

// flow is a patch, or a part of one: from one field to another.
type flow struct {
	from, to place
	// at is where the patch is, and order which patch it is, of all.
	at    origin
	order int
	// required is true of one without which the resource is not made.
	required bool
	// narrows is true of one that makes the same of several values.
	narrows bool
	// seen is true of none that a patch says, but of what was seen.
	seen bool
}

// composed is a resource that a Composition composes.
type composed struct {
	// at is where the Composition has it.
	at origin
	// base that it is made from; nil where a function made it that is not followed.
	base map[string]any
	kind typeRef
	// managed is true of a managed resource.
	managed bool
	// nested is what it composes itself; nil for nothing, and where that is not known.
	nested *graph
}

// name is the resource for a person.
func (c *composed) name() string { return "resource " + c.at.resource + " (" + c.kind.Kind + ")" }

// ungated reports whether a change of a field of it needs no allowance: metadata counts
// only where a policy names it, and nobody is asked about status.
func ungated(path change.Path) bool {
	return !below(path) || path[0].Field == fieldMetadata || path[0].Field == fieldStatus
}

// outside reports whether a field of a managed resource has to do with the external object.
// The others are about the managed resource itself.
func outside(path change.Path) bool {
	if path[0].Field != fieldSpec || len(path) == 1 {
		return path[0].Field == fieldSpec
	}

	switch path[1].Field {
	case "providerConfigRef", "deletionPolicy", "managementPolicies", "writeConnectionSecretToRef", "publishConnectionDetailsTo":
		return false
	default:
		return true
	}
}
