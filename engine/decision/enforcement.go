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

// readEnforcements finds the Enforcements that govern the object.
func (f *facts) readEnforcements() {
	if f.neverEnforced() {
		return
	}

	for _, e := range f.Enforcements {
		governs, err := e.Governs(f.enforced(), f.input())
		if err != nil {
			f.problem(&policy.EvaluationError{
				Kind: policy.KindEnforcement, Name: e.Name(), Err: fmt.Errorf("enforcement %q: %w", e.Name(), err),
			})
		}

		f.unsure = f.unsure || governs && err != nil || e.Unsure(f.enforced(), f.input())

		if governs {
			f.governing = append(f.governing, e)
		}
	}

	f.readFreed()
}

// enforced is what rules of Enforcements ask of the request.
func (l *lineage) enforced() enforcement.Target {
	return enforcement.Target{
		Resource: l.Resource, Versions: l.servedIn(), Operation: v1alpha1.Operation(l.Operation),
		Namespaced: resource.String(l.target().Object, "metadata", "namespace") != "", Name: l.target().GetName(),
	}
}

// AsksVersions reports whether a request is decided by the versions in which the object's
// resource is served: an Enforcement asks for that.
func (r *Request) AsksVersions() bool {
	return slices.ContainsFunc(r.Enforcements, func(e *enforcement.Enforcement) bool { return e.AsksVersions(r.Resource) })
}

// servedIn are the versions in which the object's resource is served; nil where they are not
// known. Those that it is asked for and stored in are among them, whoever has not heard of
// them yet.
func (l *lineage) servedIn() []string {
	if len(l.Versions) == 0 {
		return nil
	}

	out := slices.Clone(l.Versions)

	for _, u := range []*unstructured.Unstructured{l.Old, l.New} {
		if u != nil {
			out = append(out, u.GroupVersionKind().Version)
		}
	}

	return out
}

// neverEnforced reports whether the object is in the namespace Kausality itself runs in,
// or in that of the cluster's components, which no Enforcement covers: a
// mistaken one must not lock it out.
func (l *lineage) neverEnforced() bool {
	ours, _, err := serviceaccount.SplitUsername(l.Settings.Manager)
	u := l.target()

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
func (j *judge) byBroken(c change.Change) (Finding, bool) {
	if j.Action != "" || deletesForOthers(j.User) {
		return Finding{}, false
	}

	f := j.lacking(c, nil)

	for _, e := range j.governing {
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

// byException searches for an exception of each Enforcement that governs the
// object: what one of them excepts, another may still forbid. Where it is not
// sure which do, there is none.
func (j *judge) byException(c change.Change) (Finding, bool) {
	var first string

	if j.unsure {
		return Finding{}, false
	}

	for _, e := range j.governing {
		x := e.Exception(j.User, c, j.Now)
		if x == nil {
			return Finding{}, false
		}

		if name := e.Name() + "/" + x.Name; first == "" || name < first {
			first = name
		}
	}

	if first == "" {
		return Finding{}, false
	}

	return Finding{Policy: first, cause: cause{initiator: j.User.Name, exception: j.exceptionReason(first)}}, true
}

// exceptionReason is what an exception gives as its reason.
func (j *judge) exceptionReason(name string) string {
	for _, e := range j.governing {
		for _, x := range e.Spec().Exceptions {
			if e.Name()+"/"+x.Name == name {
				return name + ": " + x.Reason
			}
		}
	}

	return name
}
