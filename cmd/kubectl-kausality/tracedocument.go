// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// traceDocument is what trace prints for programs: all that is recorded on the
// object, with and without --all.
type traceDocument struct {
	header `json:",inline"`

	Object objectRef `json:"object"`
	// Parent is the object it was made for; absent for a root.
	Parent *objectRef `json:"parent,omitempty"`
	// Changes are those that were recorded, newest first.
	Changes []v1alpha1.TraceEntry `json:"changes"`
	// Gate is the gate's record; absent where there is none.
	Gate *v1alpha1.GateRecord `json:"gate,omitempty"`
	// Waits are the gates that are open, of the object and of what is made for it, and
	// what each waits for.
	Waits []gateWait `json:"waits,omitempty"`
	// Allowances are what may still follow.
	Allowances []v1alpha1.Allowance `json:"allowances"`
	// Held are the changes that are held: of the object, and of what is made for
	// it, as far as that and its Kausality condition say.
	Held []heldEntry `json:"held"`
	// HeldMore is how many more there are of which only the number is recorded.
	HeldMore int `json:"heldMore,omitempty"`
	// Stored are values of the object, and of what is made for it, that are stored and
	// are not what was allowed.
	Stored []storedEntry `json:"stored"`
	// Message is the Kausality condition's, of the object or of its parent, where it
	// says that something is held and cannot be read in parts.
	Message string `json:"message,omitempty"`
	// Problems say what could not be read of what the object hangs together with.
	Problems []string `json:"problems,omitempty"`
}

// heldEntry is one change that is held.
type heldEntry struct {
	// Field that keeps its value, or create or delete.
	Field string `json:"field"`
	// From is the value kept and To the one asked for, as text, cut where long. Empty means absent; (masked) stands for a
	// credential.
	From string `json:"from,omitempty"`
	// To is the value asked for.
	To string `json:"to,omitempty"`
	// User who asked for it, where that is known.
	User string `json:"user,omitempty"`
	// Reason says what is missing.
	Reason string `json:"reason"`
	// Digest stands for exactly this change.
	Digest string `json:"digest,omitempty"`
	// At is the last change of the parent when it was first held, as GENERATION.REQUEST.
	At string `json:"at,omitempty"`
	// Object that keeps its value; absent where it is the one that was asked about.
	Object *objectRef `json:"object,omitempty"`
	// ComposedResource is its name in the Composition where it is not created, and has no
	// other.
	ComposedResource string `json:"composedResource,omitempty"`
	// Stored is who stored the value that it keeps, by its managedFields.
	Stored *storedBy `json:"stored,omitempty"`
	// Asked is who wrote what is asked for into the Claim, by its managedFields;
	// absent where User names somebody.
	Asked *storedBy `json:"asked,omitempty"`
	// Passed is true of what mode Audit only reports.
	Passed bool `json:"passed,omitempty"`
}

// storedBy is a writer as managedFields name it.
type storedBy struct {
	// Manager is the field manager, which names a program and no user.
	Manager string `json:"manager"`
	// Time of its last write of the object.
	Time *metav1.Time `json:"time,omitempty"`
}

// storedEntry is one value that is stored and is not what was allowed.
type storedEntry struct {
	// Object that it is stored in; absent where it is the one that was asked about.
	Object *objectRef `json:"object,omitempty"`
	// Field of it, with concrete indices.
	Field string `json:"field"`
	// Value that is stored, and Allowed the one last allowed, or asked for; empty
	// means absent, and (masked) stands for a credential.
	Value string `json:"value,omitempty"`
	// Allowed is the value last allowed, or asked for.
	Allowed string `json:"allowed,omitempty"`
	// User who stored it.
	User string `json:"user"`
	// Since is when the field was first stored so, if that is recorded.
	Since *metav1.Time `json:"since,omitempty"`
	// Manager is the field manager that wrote it last, where managedFields say.
	Manager string `json:"manager,omitempty"`
	// Approvals are how many other people have to approve what follows from it, where its user may
	// initiate it by a policy that asks for approvals; absent elsewhere.
	Approvals int32 `json:"approvals,omitempty"`
}

func (d *traceDocument) refs() []objectRef { return []objectRef{d.Object} }

// documentOf reads what is known about one object, and what others say of it. The
// error names an annotation that does not parse.
func documentOf(u *unstructured.Unstructured, near related) (traceDocument, error) {
	doc := traceDocument{header: header{APIVersion: outputVersion, Kind: "Trace"}, Object: refOf(u)}

	if ref, ok := resource.ParentOf(u); ok {
		doc.Parent = &objectRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	}

	var errs [5]error

	doc.Problems = near.problems

	doc.Changes, errs[0] = allowance.ParseTrace(u)
	doc.Gate, errs[1] = allowance.ParseGate(u)
	doc.Allowances, errs[2] = allowance.Parse(u)
	errs[3] = doc.hold(u, near)
	errs[4] = doc.store(u, near)

	if err := errors.Join(errs[:]...); err != nil {
		return traceDocument{}, fmt.Errorf("%s: %w", object(u), err)
	}

	doc.Allowances = allowance.Unserved(u, doc.Allowances)
	doc.wait(u, near)

	// Lists are lists, also empty ones.
	if doc.Changes == nil {
		doc.Changes = []v1alpha1.TraceEntry{}
	}

	if doc.Allowances == nil {
		doc.Allowances = []v1alpha1.Allowance{}
	}

	if doc.Held == nil {
		doc.Held = []heldEntry{}
	}

	if doc.Stored == nil {
		doc.Stored = []storedEntry{}
	}

	return doc, nil
}
