// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// compositions checks that the function is the last step of those that need it:
// those that run it, and those of kinds that a policy is about.
func compositions(s *State) []Finding {
	out := make([]Finding, 0, len(s.Lists[Compositions].Items))

	for _, u := range s.Lists[Compositions].Items {
		steps := maps(u.Object, "spec", "pipeline")
		at := slices.IndexFunc(steps, func(step map[string]any) bool {
			return slices.Contains(s.Functions, resource.String(step, "functionRef", "name"))
		})

		f := Finding{Severity: Error, Object: "Composition " + u.GetName()}

		switch {
		case at >= 0 && at < len(steps)-1:
			after := resource.String(steps[len(steps)-1], "step")
			f.What = fmt.Sprintf("step %q runs after the function", after)
			f.Why = "what later steps change is not looked at"
			f.Remedy = fmt.Sprintf("make the step of %s the last one of spec.pipeline", resource.String(steps[at], "functionRef", "name"))
		case at < 0 && aboutComposite(s, u):
			f.Severity, f.What = Warning, "it does not run the function, though an AllowancePolicy is about its kind"
			f.Why = "what its XRs compose is not gated by the function"
			f.Remedy = "add a step of " + s.Functions[0] + " as the last one of spec.pipeline"
		default:
			continue
		}

		out = append(out, f)
	}

	return out
}

// aboutComposite reports whether a policy is about the kind that a Composition is
// for.
func aboutComposite(s *State, composition *unstructured.Unstructured) bool {
	ref := resource.Map(composition.Object, "spec", "compositeTypeRef")
	gk := schema.FromAPIVersionAndKind(resource.String(ref, "apiVersion"), resource.String(ref, "kind")).GroupKind()

	return slices.ContainsFunc(s.Lists[AllowancePolicies].Items, func(p *unstructured.Unstructured) bool {
		match := resource.Map(p.Object, "spec", "match")
		group := resource.String(match, "apiGroup")

		return resource.String(match, "kind") == gk.Kind && (group == "" || group == gk.Group)
	})
}

// oldest is the oldest version of Crossplane that is supported: it and those
// after it give functions what they require, and set observedGeneration.
const oldest = "1.20.0"

// crossplane checks the version of Crossplane.
func crossplane(s *State) []Finding {
	if s.Lists[CRDs].find(Compositions.Resource+"."+Compositions.Group) == nil {
		return []Finding{{
			Severity: Warning, What: "Crossplane is not installed", Why: "only what the webhook is asked about is looked at",
			Remedy: "install Crossplane " + oldest + " or newer, if this cluster is to have it",
		}}
	}

	text := crossplaneVersion(s)

	v, err := version.ParseGeneric(strings.TrimPrefix(text, "v"))
	if err != nil {
		generation := "1.x"
		if s.Lists[CRDs].find("managedresourcedefinitions.apiextensions.crossplane.io") != nil {
			generation = "2.x"
		}

		return []Finding{{Severity: OK, What: "Crossplane " + generation + ", by its kinds; no Deployment tells the exact version."}}
	}

	if v.LessThan(version.MustParseGeneric(oldest)) || v.Major() > 2 {
		return []Finding{{
			Severity: Error, What: "Crossplane " + text + " is not supported", Why: "functions may not be given the policies they require",
			Remedy: "use Crossplane " + oldest + " or newer, below 3",
		}}
	}

	return []Finding{{Severity: OK, What: "Crossplane " + text + " is supported."}}
}

// crossplaneVersion is the tag of the image that Crossplane's Deployment runs;
// empty where there is none.
func crossplaneVersion(s *State) string {
	for _, d := range s.Lists[Deployments].Items {
		if d.GetLabels()["app"] != "crossplane" {
			continue
		}

		for _, c := range maps(d.Object, "spec", "template", "spec", "containers") {
			image, _, _ := strings.Cut(resource.String(c, "image"), "@")
			if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
				return image[i+1:]
			}
		}
	}

	return ""
}
