// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Held is a change of a composed resource, or of the XR, that is held.
type Held struct {
	// Change that is held, as it is listed for the manager.
	Change v1alpha1.HeldChange
	// Resource that keeps its value, as "Kind name".
	Resource string
	// OnXR is true of a change of the XR itself, which the webhook held. It is not listed.
	OnXR bool
	// Passed is true in mode Audit: the change is made and only reported.
	Passed bool
	// Policies that would allow it, once they lack nothing.
	Policies []finding.Source
	// Why are the reasons; empty where [v1alpha1.HeldChange.Missing] says it alone.
	Why []string
	// Briefly are the same in fewer words.
	Briefly []string
	// OfEdit is true where the first of them is an edit that the change comes from.
	OfEdit bool
}

// Passed is a change of a composed resource that is let through.
type Passed struct {
	// Resource that changes, as "Kind name".
	Resource string
	// Field that changes, or create or delete.
	Field string
	// Policies that allowed it, or windows.
	Policies []finding.Source
	// Initiator is who started the chain that allowed it.
	Initiator string
	// Approval is the UID of the ChangeApproval that allowed it, and Digest what that is for;
	// empty where none did.
	Approval, Digest string
	// Awaits is true of one that is not made before another one that is held.
	Awaits bool
}

// HeldOn returns what the webhook held on an XR itself, such as changes that its Claim asks for; nothing where the record
// cannot be read.
func HeldOn(xr *unstructured.Unstructured) []Held {
	list, err := allowance.ParseHeld(xr)
	if err != nil {
		return nil
	}

	out := make([]Held, len(list))
	for i, h := range list {
		out[i] = Held{Change: h, Resource: Describe(xr), OnXR: true}
	}

	return out
}

// Describe is "Kind name".
func Describe(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", u.GetKind(), resource.Name(u))
}
