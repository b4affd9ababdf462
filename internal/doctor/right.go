// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// Needs are what the manager has to be allowed in a cluster: for the kinds that
// policies, windows and Enforcements are about, XRs that run the function, whose they
// are, and the XRs and managed resources that these are composed of; what else they
// are composed of is not governed. With platform, also for all other Claims, XRs and
// managed resources, which may be governed tomorrow.
func Needs(s *State, platform bool) []right.Need {
	named := slices.Concat(
		needed(s, AllowancePolicies, &v1alpha1.AllowancePolicy{}, right.OfPolicy),
		needed(s, UpgradeAllowances, &v1alpha1.UpgradeAllowance{}, right.OfWindow),
		needed(s, Enforcements, &v1alpha1.Enforcement{}, right.OfEnforcement),
	)

	kinds, composed := map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}

	for _, u := range s.Lists[Compositions].Items {
		if resource.RunsFunction(u, s.Functions) {
			kinds[resource.ComposesFor(u)] = true
		}
	}

	for _, xr := range s.Composites {
		for _, ref := range resource.Composed(xr) {
			composed[ref.GroupKind()] = true
		}
	}

	for _, u := range slices.Concat(s.Composites, s.Managed) {
		if ref, ok := resource.ParentOf(u); ok {
			kinds[ref.GroupKind()] = true
		}
	}

	var found []right.Need

	for _, k := range s.Served {
		gk := schema.GroupKind{Group: k.Group, Kind: k.Kind}
		if kinds[gk] || k.Crossplane && (platform || composed[gk]) {
			found = append(found, right.Governed(k))
		}
	}

	return right.Join(named, found)
}

// Parameters are the resources that hold parameters of policies and that the manager or
// Crossplane may not read, as far as the policies say of what they are now; with all,
// whatever they say. Those that nobody can read, whatever role they have, are not among
// them.
func Parameters(s *State, all bool) []schema.GroupResource {
	var out []schema.GroupResource

	for _, u := range s.Lists[AllowancePolicies].Items {
		p := &v1alpha1.AllowancePolicy{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) != nil {
			continue
		}

		gvk, ok := policy.ParamKindOf(&p.Spec)
		if !ok || !all && policy.ParametersReadable(p) {
			continue
		}

		for _, k := range s.Readable {
			gr := schema.GroupResource{Group: k.Group, Resource: k.Resource}
			if k.Group == gvk.Group && k.Kind == gvk.Kind && !slices.Contains(out, gr) {
				out = append(out, gr)
			}
		}
	}

	slices.SortFunc(out, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })

	return out
}

// needed are the needs of objects of ours. One that cannot be read is another
// check's.
func needed[T runtime.Object](s *State, src Source, proto T, of func(T, []right.Kind) []right.Need) []right.Need {
	var out []right.Need

	for _, u := range s.Lists[src].Items {
		obj, _ := proto.DeepCopyObject().(T)
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj) == nil {
			out = append(out, of(obj, s.Served)...)
		}
	}

	return out
}

// Composites are the sources of the XRs whose Compositions run the function, to be
// read for [State.Composites].
func Composites(s *State) []Source {
	var out []Source

	for _, crd := range s.Lists[CRDs].Items {
		k := kindOf(crd)
		if slices.ContainsFunc(s.Lists[Compositions].Items, func(u *unstructured.Unstructured) bool {
			return resource.RunsFunction(u, s.Functions) && resource.ComposesFor(u) == schema.GroupKind{Group: k.group, Kind: k.kind}
		}) {
			out = append(out, Source{Group: k.group, Version: k.version, Resource: k.resource})
		}
	}

	return out
}

// Former are the sources of the XRs of which no Composition runs the function, to be read for [State.Former].
func Former(s *State) []Source {
	runs := Composites(s)

	var out []Source

	for _, crd := range s.Lists[CRDs].Items {
		k := kindOf(crd)
		src := Source{Group: k.group, Version: k.version, Resource: k.resource}

		if !slices.Contains(runs, src) && slices.ContainsFunc(s.Lists[Compositions].Items, func(u *unstructured.Unstructured) bool {
			return resource.ComposesFor(u) == schema.GroupKind{Group: k.group, Kind: k.kind}
		}) {
			out = append(out, src)
		}
	}

	return out
}

// Dropped reports whether the manager says of an XR that its Composition does not run the function any more.
func Dropped(xr *unstructured.Unstructured) bool {
	c, ok := resource.ConditionOf(xr, v1alpha1.ConditionKausality)

	return ok && c.Reason == v1alpha1.ReasonNotRun
}

// rights checks that the manager may do what it has to.
func rights(s *State) []Finding {
	if s.RightsProblem != nil {
		return []Finding{{
			Severity: Warning, What: "cannot ask what the manager may do: " + s.RightsProblem.Error(),
			Why:    "whether it has all rights that what is governed takes is not known here; conditions of policies say what it finds missing",
			Remedy: "run it as somebody who may create subjectaccessreviews.authorization.k8s.io",
		}}
	}

	out := make([]Finding, 0, len(s.MissingRights))

	for _, l := range s.MissingRights {
		out = append(out, Finding{
			Severity: Error, Object: "ServiceAccount " + s.Manager.Namespace + "/" + s.Manager.ServiceAccount,
			What:   "the manager may not " + l.String(),
			Why:    "what is asked for there is held or refused, and gates stay as they are",
			Remedy: "see the roles that are printed by kubectl kausality doctor --roles, and apply them: " + right.Remedy,
		})
	}

	return out
}
