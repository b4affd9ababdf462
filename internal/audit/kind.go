// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// asked reports whether the API server asks Kausality about objects of a kind: its
// objects have gates, or it is named or covered.
func (c Config) asked(k kind.Served) bool {
	return k.Gated() || slices.ContainsFunc(c.Admission.Names(), func(n kind.Name) bool { return n.Matches(k.GVK) }) ||
		slices.ContainsFunc(admission.Covered(c.Admission.Enforcements, []kind.Served{k}),
			func(e admission.Enforced) bool { return len(e.Kinds) > 0 })
}

// enforced reports whether any Enforcement refuses or holds what is not allowed of
// objects of a kind.
func (c Config) enforced(k kind.Served) bool {
	return slices.ContainsFunc(admission.Covered(c.Admission.Enforcements, []kind.Served{k}), func(e admission.Enforced) bool {
		return len(e.Kinds) > 0 && strict(e.Enforcement.Spec().ValidationActions)
	})
}

// refOfKind names a kind.
func refOfKind(k kind.Served) Ref {
	version, name := k.GVK.ToAPIVersionAndKind()

	return Ref{APIVersion: version, Kind: name}
}

// notGoverned is of a kind that XRs compose, and of which nobody asks Kausality.
func notGoverned(k kind.Served) Finding {
	return newFinding(KindNotGoverned, refOfKind(k),
		"XRs whose Composition runs the function compose it; no policy names it, no Enforcement covers it, and it has no gates",
		"name it in an AllowancePolicy, or cover it by an Enforcement, if edits of its objects matter")
}

// notEnforced is of a kind of roots that policies are about, and no Enforcement.
func notEnforced(k kind.Served) Finding {
	return newFinding(KindNotEnforced, refOfKind(k),
		"AllowancePolicies are about it, and no Enforcement with Deny or Hold covers it",
		fmt.Sprintf("add an Enforcement of %s, with validationActions [Deny] or [Hold], once its users may initiate what they have to",
			k.GroupResource()))
}

// functionMissing is of an XR whose Composition does not run the function. It weighs more
// where it did, or where policies are about the XR or its Claim.
func functionMissing(u *unstructured.Unstructured, named bool) Finding {
	about, whose := RefOf(u), "it"
	if claim, ok := resource.ClaimOf(u); ok {
		whose = fmt.Sprintf("it, for %s %s/%s,", claim.Kind, claim.Namespace, claim.Name)
	}

	f := newFinding(FunctionMissing, about,
		fmt.Sprintf("%s is composed by CompositionRevision %s, which has no step that runs function-kausality", whose, resource.RevisionOf(u)),
		"add a step of function-kausality as the last one of spec.pipeline of its Composition")

	if _, ran := resource.ConditionOf(u, v1alpha1.ConditionKausality); ran || named {
		f.Severity, f.Result = High, Fail
		f.Why = "policies are about it, and nothing is held of what it composes"
	}

	return f
}
