// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

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
	// Allowances are what may still follow.
	Allowances []v1alpha1.Allowance `json:"allowances"`
	// Held are the changes that are kept back.
	Held []v1alpha1.HeldChange `json:"held"`
}

func (d traceDocument) refs() []objectRef { return []objectRef{d.Object} }

// documentOf reads what is known about one object. The error names an annotation
// that does not parse.
func documentOf(u *unstructured.Unstructured) (traceDocument, error) {
	doc := traceDocument{header: header{APIVersion: outputVersion, Kind: "Trace"}, Object: refOf(u)}

	if ref, ok := resource.ParentOf(u); ok {
		doc.Parent = &objectRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	}

	var errs [4]error

	doc.Changes, errs[0] = allowance.ParseTrace(u)
	doc.Gate, errs[1] = allowance.ParseGate(u)
	doc.Allowances, errs[2] = allowance.Parse(u)
	doc.Held, errs[3] = allowance.ParseHeld(u)

	if err := errors.Join(errs[:]...); err != nil {
		return traceDocument{}, fmt.Errorf("%s: %w", object(u), err)
	}

	doc.Allowances = allowance.Unconsumed(u, doc.Allowances)

	// Lists are lists, also empty ones.
	if doc.Changes == nil {
		doc.Changes = []v1alpha1.TraceEntry{}
	}

	if doc.Allowances == nil {
		doc.Allowances = []v1alpha1.Allowance{}
	}

	if doc.Held == nil {
		doc.Held = []v1alpha1.HeldChange{}
	}

	return doc, nil
}
