// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Material is what suggestions are made from. Nothing of it is modified.
type Material struct {
	// Composition that policies are suggested for.
	Composition *unstructured.Unstructured
	// Compositions there are, for XRs that it composes; it may be among them.
	Compositions []*unstructured.Unstructured
	// Definitions are CompositeResourceDefinitions: of its XR, and of XRs that it
	// composes.
	Definitions []*unstructured.Unstructured
	// Kinds are CustomResourceDefinitions of what is composed, as far as they are known.
	Kinds []*unstructured.Unstructured
	// Observed are changes that were seen of what is composed; nil for none. A source of
	// them, such as [HeldOf], needs to know nothing of Compositions.
	Observed iter.Seq[Observed]
}

// Options say what to suggest.
type Options struct {
	// Subjects who may start a chain. Without any, policies have [ReplaceMe].
	Subjects []v1alpha1.Subject
	// Crossplane is the service account that carries changes on.
	Crossplane v1alpha1.Subject
	// External is true where providers may carry out what is changed of managed resources.
	External bool
	// Create and Delete are whether the subjects may make and delete roots.
	Create, Delete bool
	// Prefix of the policies' names.
	Prefix string
	// Silent are names of composition functions that compose nothing.
	Silent []string
}

// ReplaceMe is the subject of policies for which none is given. No user has this name, so
// that it lets nobody in.
func ReplaceMe() v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: "REPLACE-ME: who may start this", MayInitiate: true}
}

// Suggestion is what was found out about a Composition.
type Suggestion struct {
	// Composition that it is about.
	Composition string
	// Notes say of the Composition what no policy is about, each in one line.
	Notes []string
	// Policies that are suggested, each with why: those about Claims and the XR first, then
	// those about XRs further down.
	Policies []Suggested
	// Problems are what could not be followed; policies may be missing because of each.
	Problems []Problem
}

// Suggested is a policy, and why.
type Suggested struct {
	// Comments say what it is for, each in one line.
	Comments []string
	// Policy that is suggested.
	Policy v1alpha1.AllowancePolicy
}

// Problem is something that could not be followed.
type Problem struct {
	// Composition that it is in.
	Composition string
	// Step of its pipeline; empty where it is in none.
	Step string
	// Resource of the step, as the step names it; empty where it is of none.
	Resource string
	// Patch of the resource, such as patches[2]; empty where it is no patch.
	Patch string
	// Why it could not be followed.
	Why string
}

// String names the place, from the outside in, and why.
func (p Problem) String() string {
	return "Composition " + p.Composition + ": " + origin{p.Step, p.Resource, p.Patch}.prefix() + p.Why
}

// origin is a place in a Composition.
type origin struct{ step, resource, patch string }

// String is the place in few words: STEP/RESOURCE patches[0].
func (o origin) String() string {
	where := strings.Trim(o.step+"/"+o.resource, "/")

	return strings.TrimSpace(where + " " + o.patch)
}

func (o origin) prefix() string {
	out := ""
	if o.step != "" {
		out += "step " + o.step + ": "
	}

	if o.resource != "" {
		out += "resource " + o.resource + ": "
	}

	if o.patch != "" {
		out += o.patch + ": "
	}

	return out
}
