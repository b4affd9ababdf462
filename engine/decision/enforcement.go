// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// enforced is what Enforcements say of the object.
type enforced struct {
	// all that are in force, and those of them that govern it, in the order they are given.
	all, governing []*enforcement.Enforcement
	// unsure is true where one may or may not.
	unsure bool
	// freed is true where one would no longer, once the request is stored.
	freed bool
	// never is true where none ever covers the object.
	never bool
}

// readEnforced finds the Enforcements that govern the object.
func readEnforced(o objects, in policy.Input, all []*enforcement.Enforcement, manager string, problems *problems) enforced {
	out := enforced{all: all, never: neverEnforced(o, manager)}
	if out.never {
		return out
	}

	target := o.enforcementTarget()

	for _, e := range all {
		governs, err := e.Governs(target, in)
		if err != nil {
			problems.add(&policy.EvaluationError{
				Kind: policy.KindEnforcement, Name: e.Name(), Err: fmt.Errorf("enforcement %q: %w", e.Name(), err),
			})
		}

		out.unsure = out.unsure || governs && err != nil || e.Unsure(target, in)

		if governs {
			out.governing = append(out.governing, e)
		}
	}

	out.freed = o.Operation == OperationUpdate && freesItself(target, in, out.governing)

	return out
}

// enforcementTarget is what rules of Enforcements ask of the request.
func (o objects) enforcementTarget() enforcement.Target {
	return enforcement.Target{
		Resource: o.Resource, Versions: o.servedIn(), Operation: v1alpha1.Operation(o.Operation),
		Namespaced: resource.String(o.target().Object, "metadata", "namespace") != "", Name: o.target().GetName(),
	}
}

// AsksVersions reports whether a request is decided by the versions in which the object's
// resource is served: an Enforcement asks for that.
func (r *Request) AsksVersions() bool {
	return slices.ContainsFunc(r.Basis.Enforcements, func(e *enforcement.Enforcement) bool { return e.AsksVersions(r.Resource) })
}

// servedIn are the versions in which the object's resource is served; nil where they are not
// known. Those that it is asked for and stored in are among them, whoever has not heard of
// them yet.
func (o objects) servedIn() []string {
	if len(o.Versions) == 0 {
		return nil
	}

	out := slices.Clone(o.Versions)

	for _, u := range []*unstructured.Unstructured{o.Old, o.New} {
		if u != nil {
			out = append(out, u.GroupVersionKind().Version)
		}
	}

	return out
}

// neverEnforced reports whether the object is in the namespace Kausality itself runs in,
// or in that of the cluster's components, which no Enforcement covers: a
// mistaken one must not lock it out.
func neverEnforced(o objects, manager string) bool {
	ours, _, err := serviceaccount.SplitUsername(manager)
	u := o.target()

	namespace := resource.String(u.Object, "metadata", "namespace")
	if u.GetKind() == "Namespace" {
		namespace = u.GetName()
	}

	return err == nil && namespace == ours || namespace == metav1.NamespaceSystem
}

// sourceOfEnforcement names an Enforcement that had a part in a decision.
func sourceOfEnforcement(e *enforcement.Enforcement) Source {
	return Source{Kind: policy.KindEnforcement, Name: e.Name(), Generation: e.Generation()}
}

// byBroken refuses a change that an Enforcement governs which cannot be
// evaluated, as its failure policy says. Who deletes what others have deleted is
// let through, as ever.
func byBroken(in *inputs, c change.Change) (Finding, bool) {
	if in.how.Action != "" || deletesForOthers(in.by.User) {
		return Finding{}, false
	}

	f := in.unallowed(c, nil)

	for _, e := range in.enforced.governing {
		if e.Refuses() {
			f.Lacks = append(f.Lacks, Lack{
				What: policy.LackEnforcement, Text: fmt.Sprintf(
					"Enforcement %q with failurePolicy Fail does not compile at %s", e.Name(), strings.Join(e.Broken(), ", ")),
				Fix: "correct it, set its failurePolicy to Ignore, or delete it",
			})
		}
	}

	return f, len(f.Lacks) > 0
}

// actionOf is what an Enforcement has done about unallowed changes.
func actionOf(e *enforcement.Enforcement) v1alpha1.ValidationAction {
	if e.Refuses() {
		return v1alpha1.ActionDeny
	}

	return e.Action()
}

// refusedAs starts the message of a refusal: whether anybody asked for what an
// Enforcement refuses that cannot be evaluated, nobody has checked.
func refusedAs(findings []Finding) string {
	for _, f := range findings {
		if slices.ContainsFunc(f.Lacks, func(l Lack) bool { return l.What == policy.LackEnforcement }) {
			return "this change cannot be judged: "
		}
	}

	return "change not allowed: "
}
