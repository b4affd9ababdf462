// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

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
	// maxWarnings is how many warnings the status of a window, a binding or an Enforcement holds.
	maxWarnings = 256
)

// Policy returns what is wrong with a policy that does not prevent it from being used:
// with its paths and expressions, for each kind that it names, with its verbs, and that
// nobody can make use of it by what others give. One that does not compile has no
// findings.
func Policy(p *v1alpha1.AllowancePolicy, kinds []kind.Served, schemas Schemas, all Grants) []Finding {
	compiled, errs := policy.Compile(p)
	if len(errs) > 0 {
		return nil
	}

	var (
		out      []Finding
		params   *spec.Schema
		composed bool
	)

	if gvk, ok := compiled.ParamKind(); ok {
		params = schemas(gvk)
	}

	for _, gvk := range Kinds(p, kinds) {
		gk := gvk.GroupKind()
		parents := all.Parents(gk, kinds)
		composed = composed || policy.IsAbout(&p.Spec.Match, gk) && slices.ContainsFunc(parents, func(k kind.Served) bool { return k.Composite })

		a := Against{
			Kind: gk, Schema: schemas(gvk), Params: params, Parent: schemas.ofParent(parents),
			Managed: slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed && k.GVK == gvk }),
		}
		out = append(out, ofKind(gvk, a.Policy(&p.Spec))...)
	}

	managed := slices.ContainsFunc(kinds, func(k kind.Served) bool { return k.Managed && policy.IsAbout(&p.Spec.Match, k.GVK.GroupKind()) })
	readings := compiled.ConditionReadings()

	if composed {
		out = append(out, checkComposed(&p.Spec, readings)...)
	}

	given := all.Besides(p)

	return slices.Concat(out, CheckVerbs(p.Spec.Allow, managed), Reach(&p.Spec, given),
		checkStart(&p.Spec, readings, given), checkApprovals(&p.Spec))
}

// ofKind are findings about a kind, which they name.
func ofKind(gvk schema.GroupVersionKind, list []Finding) []Finding {
	for i := range list {
		list[i].Message = fmt.Sprintf("%s, kind %s: %s", gvk.GroupVersion(), gvk.Kind, list[i].Message)
	}

	return list
}

// ofParent is the schema of the one kind that all parents are of; nil where they may be of several.
func (s Schemas) ofParent(parents []kind.Served) *spec.Schema {
	if len(parents) != 1 {
		return nil
	}

	return s(parents[0].GVK)
}

// ofKinds checks parts against each of some kinds.
func (s Schemas) ofKinds(kinds []schema.GroupVersionKind, parts func(schema.GroupKind) []Part) []Finding {
	out := make([]Finding, 0, len(kinds))

	for _, gvk := range kinds {
		out = append(out, ofKind(gvk, Against{Kind: gvk.GroupKind(), Schema: s(gvk)}.check(parts(gvk.GroupKind())))...)
	}

	return out
}

// Binding returns what is wrong with a binding of a policy that does not keep it from being
// used: subjects for which never is true, and conditions, for each kind that the policy is
// about. One that does not compile has no findings.
func Binding(
	in *v1alpha1.AllowanceBinding, p *v1alpha1.AllowancePolicy, kinds []kind.Served, schemas Schemas, never func(v1alpha1.Subject) bool,
) []Finding {
	b, errs := policy.CompileBinding(in)
	if len(errs) > 0 {
		return nil
	}

	about := slices.DeleteFunc(Kinds(p, kinds), func(gvk schema.GroupVersionKind) bool {
		return !policy.IsAbout(&p.Spec.Match, gvk.GroupKind())
	})
	parts := BindingParts(in)
	out := append(checkSubjects(b.Subjects(), never), schemas.ofKinds(about, func(schema.GroupKind) []Part { return parts })...)

	return out[:min(len(out), maxWarnings-1)] // One may come before them.
}

// Enforcement returns what is wrong with the conditions of an Enforcement, for each kind
// that its rules name. Of one that does not compile what does is checked.
func Enforcement(in *v1alpha1.Enforcement, served []kind.Served, schemas Schemas) []Finding {
	e, _ := enforcement.Compile(in)
	parts := slices.DeleteFunc(ConditionParts(in.Spec.MatchConditions), func(p Part) bool {
		return slices.Contains(e.Broken(), p.Written.At.String())
	})
	out := schemas.ofKinds(enforcedKinds(e, served), func(schema.GroupKind) []Part { return parts })

	return out[:min(len(out), maxWarnings)]
}

// Window returns what is wrong with the paths that a window allows, for each kind that it
// names.
func Window(u *v1alpha1.UpgradeAllowance, named []kind.Served, schemas Schemas) []Finding {
	out := schemas.OfWindow(u, named)

	return out[:min(len(out), maxWarnings)]
}

// OfWindow checks the paths that a window allows.
func (s Schemas) OfWindow(u *v1alpha1.UpgradeAllowance, named []kind.Served) []Finding {
	kinds := WindowKinds([]v1alpha1.UpgradeAllowance{*u}, named)

	return s.ofKinds(kinds, func(gk schema.GroupKind) []Part { return allowParts(u.Spec.Allow, gk) })
}
