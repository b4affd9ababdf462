// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Enforced is what Enforcements say of the object.
type Enforced struct {
	// All that are in force, and those of them that govern it, in the order they are given.
	All, Governing []*enforcement.Enforcement
	// Unsure is true where one may or may not.
	Unsure bool
	// Freed is true where one would no longer, once the request is stored.
	Freed bool
	// Never is true where none ever covers the object.
	Never bool
}

// readEnforced finds the Enforcements that govern the object.
func readEnforced(
	o request.Objects, in expression.Input, all []*enforcement.Enforcement, manager string, problems *request.Problems,
) Enforced {
	out := Enforced{All: all, Never: NeverEnforced(o, manager)}
	if out.Never {
		return out
	}

	target := o.EnforcementTarget()

	for _, e := range all {
		governs, err := e.Governs(target, in)
		if err != nil {
			problems.Add(&expression.EvaluationError{
				Kind: v1alpha1.KindEnforcement, Name: e.Name(), Err: fmt.Errorf("enforcement %q: %w", e.Name(), err),
			})
		}

		out.Unsure = out.Unsure || governs && err != nil || e.Unsure(target, in)

		if governs {
			out.Governing = append(out.Governing, e)
		}
	}

	out.Freed = o.Operation == request.OperationUpdate && freesItself(target, in, out.Governing)

	return out
}

// NeverEnforced reports whether the object is in the namespace Kausality itself runs in,
// or in that of the cluster's components, which no Enforcement covers: a
// mistaken one must not lock it out.
func NeverEnforced(o request.Objects, manager string) bool {
	ours, _, err := serviceaccount.SplitUsername(manager)
	u := o.Target()

	namespace := resource.String(u.Object, "metadata", "namespace")
	if u.GetKind() == "Namespace" {
		namespace = u.GetName()
	}

	return err == nil && namespace == ours || namespace == metav1.NamespaceSystem
}

// ActionOf is what an Enforcement has done about unallowed changes.
func ActionOf(e *enforcement.Enforcement) v1alpha1.ValidationAction {
	if e.Refuses() {
		return v1alpha1.ActionDeny
	}

	return e.Action()
}

// RefusedAs starts the message of a refusal: whether anybody asked for what an
// Enforcement refuses that cannot be evaluated, nobody has checked.
func RefusedAs(findings []finding.Finding) string {
	for _, f := range findings {
		if slices.ContainsFunc(f.Lacks, func(l finding.Lack) bool { return l.What == policy.LackEnforcement }) {
			return "this change cannot be judged: "
		}
	}

	return "change not allowed: "
}

// freesItself reports whether an Enforcement that governs the object would no
// longer govern it once the request is stored.
func freesItself(target enforcement.Target, in expression.Input, governing []*enforcement.Enforcement) bool {
	in.OldObject = in.Object

	return slices.ContainsFunc(governing, func(e *enforcement.Enforcement) bool {
		governs, _ := e.Governs(target, in) // What fails was reported.

		return !governs
	})
}
