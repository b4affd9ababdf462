// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Schemas gives the schema of a kind, whose references are resolved; nil where there is
// none.
type Schemas func(schema.GroupVersionKind) *spec.Schema

// Limits of checking one object: the rules of an Enforcement may name all of many groups.
const (
	// maxEnforcedKinds is against how many kinds the conditions of an Enforcement are checked.
	//
	// Source: k8s.io/apiserver pkg/admission/plugin/policy/validating/typechecking.go.
	maxEnforcedKinds = 10
	// MaxWarnings is how many warnings the status of a binding or an Enforcement holds.
	MaxWarnings = 256
)

// Check is what found a warning.
type Check string

// Checks.
const (
	// CheckSchema compares paths and expressions with the schema of a kind.
	CheckSchema Check = "Schema"
	// CheckVerb compares verbs with those of the systems outside.
	CheckVerb Check = "Verb"
	// CheckReach finds policies that nobody can make use of.
	CheckReach Check = "Reach"
	// CheckStart finds conditions that decide only where a chain starts.
	CheckStart Check = "Start"
	// CheckApproval finds approvals that nothing waits for.
	CheckApproval Check = "Approval"
	// CheckSubject finds subjects of bindings who initiate nothing.
	CheckSubject Check = "Subject"
)

// Result is one warning, and what found it.
type Result struct {
	v1alpha1.TypeCheckingWarning

	Check Check
}

// Warnings are results as a status holds them; nil for none.
func Warnings(results []Result) []v1alpha1.TypeCheckingWarning {
	if len(results) == 0 {
		return nil
	}

	out := make([]v1alpha1.TypeCheckingWarning, 0, len(results))
	for _, r := range results {
		out = append(out, r.TypeCheckingWarning)
	}

	return out
}

func results(check Check, list []v1alpha1.TypeCheckingWarning) []Result {
	out := make([]Result, 0, len(list))
	for _, w := range list {
		out = append(out, Result{w, check})
	}

	return out
}

// ofKind are results about a kind, which they name.
func ofKind(gvk schema.GroupVersionKind, list []v1alpha1.TypeCheckingWarning) []Result {
	for i := range list {
		list[i].Warning = fmt.Sprintf("%s, kind %s: %s", gvk.GroupVersion(), gvk.Kind, list[i].Warning)
	}

	return results(CheckSchema, list)
}

// Policy returns what is wrong with a policy that does not prevent it from being used:
// with its paths and expressions, for each kind that it names, with its verbs, and that
// nobody can make use of it by what others give. One that does not compile has no
// results.
func Policy(p *v1alpha1.AllowancePolicy, kinds []kind.Served, schemas Schemas, all Grants) []Result {
	compiled, errs := policy.Compile(p)
	if len(errs) > 0 {
		return nil
	}

	var (
		out      []Result
		params   *spec.Schema
		composed bool
	)

	if gvk, ok := compiled.ParamKind(); ok {
		params = schemas(gvk)
	}

	for _, gvk := range Kinds(p, kinds) {
		parents := all.Parents(gvk.GroupKind(), kinds)
		composed = composed || policy.IsAbout(&p.Spec.Match, gvk.GroupKind()) && slices.ContainsFunc(parents, composite)

		out = append(out, ofKind(gvk, compiled.CheckBelow(gvk.GroupKind(), schemas(gvk), params, schemas.ofParent(parents)))...)

		if slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed && k.GVK == gvk }) {
			out = append(out, ofKind(gvk, compiled.CheckCloseWhen(schemas(gvk)))...)
		}
	}

	managed := slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed && policy.IsAbout(&p.Spec.Match, k.GVK.GroupKind()) })

	if composed {
		out = append(out, results(CheckReach, compiled.CheckComposed())...)
	}

	given := all.Besides(p)

	return slices.Concat(out,
		results(CheckVerb, policy.CheckExternal(p.Spec.Allow, managed)),
		results(CheckReach, compiled.CheckReach(given)),
		results(CheckStart, compiled.CheckStart(given)),
		results(CheckApproval, compiled.CheckApproval()))
}

func composite(k kind.Served) bool { return k.Composite }

// ofParent is the schema of the one kind that all parents are of; nil where they may be of several.
func (s Schemas) ofParent(parents []kind.Served) *spec.Schema {
	if len(parents) != 1 {
		return nil
	}

	return s(parents[0].GVK)
}

// Kinds are the served kinds that a policy names, each once.
func Kinds(p *v1alpha1.AllowancePolicy, served []kind.Served) []schema.GroupVersionKind {
	names := kind.OfPolicy(p.Spec)

	var out []schema.GroupVersionKind

	for _, k := range served {
		named := slices.ContainsFunc(names, func(n kind.Name) bool { return n.Matches(k.GVK) })
		if named && !slices.Contains(out, k.GVK) {
			out = append(out, k.GVK)
		}
	}

	return out
}

// Binding returns what is wrong with a binding of a policy that does not keep it from being
// used: subjects for which never is true, and conditions, for each kind that the policy is
// about. One that does not compile has no results.
func Binding(
	in *v1alpha1.AllowanceBinding, p *v1alpha1.AllowancePolicy, kinds []kind.Served, schemas Schemas, never func(v1alpha1.Subject) bool,
) []Result {
	b, errs := policy.CompileBinding(in)
	if len(errs) > 0 {
		return nil
	}

	out := results(CheckSubject, b.CheckSubjects(never))

	for _, gvk := range Kinds(p, kinds) {
		if policy.IsAbout(&p.Spec.Match, gvk.GroupKind()) {
			out = append(out, ofKind(gvk, b.TypeCheck(schemas(gvk)))...)
		}
	}

	return slices.Clip(out[:min(len(out), MaxWarnings-1)]) // One may come before them.
}

// Enforcement returns what is wrong with the conditions of an Enforcement, for each kind
// that its rules name. Of one that does not compile what does is checked.
func Enforcement(in *v1alpha1.Enforcement, served []kind.Served, schemas Schemas) []Result {
	e, _ := enforcement.Compile(in)

	kinds := enforcedKinds(e, served)

	out := make([]Result, 0, len(kinds))
	for _, gvk := range kinds {
		out = append(out, ofKind(gvk, e.Check(schemas(gvk)))...)
	}

	return out[:min(len(out), MaxWarnings)]
}

// EnforcedKinds are the served kinds against which the conditions of some Enforcements are
// checked: those that their rules name by resource or group, and not whatever there is.
func EnforcedKinds(list []v1alpha1.Enforcement, served []kind.Served) []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, 0, len(list))

	for i := range list {
		e, _ := enforcement.Compile(&list[i]) // Of a broken one what compiles is checked.
		out = append(out, enforcedKinds(e, served)...)
	}

	return out
}

func enforcedKinds(e *enforcement.Enforcement, served []kind.Served) []schema.GroupVersionKind {
	if len(e.Spec().MatchConditions) == 0 {
		return nil
	}

	var out []schema.GroupVersionKind

	for _, k := range served {
		if len(out) < maxEnforcedKinds && e.Names(k.GroupResource()) && !slices.Contains(out, k.GVK) {
			out = append(out, k.GVK)
		}
	}

	return out
}
