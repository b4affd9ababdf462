// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// kind is a kind of managed resource.
type kind struct {
	group, version, resource, kind string
}

func (k kind) String() string { return k.kind + "." + k.group }

// kindOf reads a CRD. The names are those of the stored version.
func kindOf(crd *unstructured.Unstructured) kind {
	out := kind{
		group: resource.String(crd.Object, "spec", "group"), kind: resource.String(crd.Object, "spec", "names", "kind"),
		resource: resource.String(crd.Object, "spec", "names", "plural"),
	}

	for _, v := range maps(crd.Object, "spec", "versions") {
		if served, _ := v["served"].(bool); served && (out.version == "" || v["storage"] == true) {
			out.version, _ = v["name"].(string)
		}
	}

	return out
}

// has reports whether a served version of a CRD has a field of spec.
func has(crd *unstructured.Unstructured, field string) bool {
	return slices.ContainsFunc(maps(crd.Object, "spec", "versions"), func(v map[string]any) bool {
		served, _ := v["served"].(bool)

		return served && resource.Map(v, "schema", "openAPIV3Schema", "properties", "spec", "properties", field) != nil
	})
}

// named reports whether a policy is about a kind.
func named(policy *unstructured.Unstructured, k kind) bool {
	is := func(m map[string]any) bool {
		group := resource.String(m, "apiGroup")

		return resource.String(m, "kind") == k.kind && (group == "" || group == k.group)
	}

	return is(resource.Map(policy.Object, "spec", "match")) || slices.ContainsFunc(maps(policy.Object, "spec", "allow"), is)
}

// counts reports whether a policy does. One that lacks rights does, too: its objects are
// guarded, and what is open is so.
func counts(p *unstructured.Unstructured) bool {
	ready, _ := resource.ConditionOf(p, v1alpha1.ConditionReady)

	return ready.True() || ready.Reason == v1alpha1.ReasonRightsMissing
}

// gatedKinds are the kinds of managed resources that have gates: policies name them,
// Enforcements cover them, or XRs compose them by the function.
func gatedKinds(s *State) []kind {
	composed := map[schema.GroupKind]bool{}

	for _, xr := range slices.Concat(s.Composites, s.Former) {
		for _, ref := range resource.Composed(xr) {
			composed[ref.GroupKind()] = true
		}
	}

	covered := map[schema.GroupResource]bool{}
	for _, n := range needed(s, Enforcements, &v1alpha1.Enforcement{}, right.OfEnforcement) {
		covered[n.GroupResource] = true
	}

	var out []kind

	for _, crd := range s.Lists[CRDs].Items {
		k := kindOf(crd)
		if !has(crd, "managementPolicies") || !has(crd, "forProvider") {
			continue
		}

		if composed[schema.GroupKind{Group: k.group, Kind: k.kind}] || covered[schema.GroupResource{Group: k.group, Resource: k.resource}] ||
			slices.ContainsFunc(s.Lists[AllowancePolicies].Items, func(p *unstructured.Unstructured) bool { return counts(p) && named(p, k) }) {
			out = append(out, k)
		}
	}

	return out
}

// Gated are the sources of the managed resources of gated kinds, to be read for
// [State.Managed] after [State.Composites], [State.Former] and [State.Served].
func Gated(s *State) []Source {
	kinds := gatedKinds(s)
	out := make([]Source, 0, len(kinds))

	for _, k := range kinds {
		out = append(out, Source{Group: k.group, Version: k.version, Resource: k.resource})
	}

	return out
}

// kinds checks that managed resources can be gated.
func kinds(s *State) []Finding {
	var out []Finding

	for _, crd := range s.Lists[CRDs].Items {
		if !slices.Contains(resource.Strings(crd.Object, "spec", "names", "categories"), "managed") || !has(crd, "forProvider") ||
			has(crd, "managementPolicies") {
			continue
		}

		out = append(out, Finding{
			Severity: Warning, Object: kindOf(crd).String(), What: "the kind has no spec.managementPolicies",
			Why:    "what its provider does cannot be gated; the webhook and the function still are",
			Remedy: "take a version of the provider that supports management policies",
		})
	}

	return out
}
