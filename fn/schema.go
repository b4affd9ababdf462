// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"maps"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keySchema starts the keys of the schemas the function asks for.
const keySchema = "kausality.io/schema/"

// keyDefinition starts the keys of the CRDs that the function asks for.
const keyDefinition = "kausality.io/definition/"

// requireSchemas asks for the schemas of managed resources of which none shows whether its kind, in the version
// desired, has spec.managementPolicies, where Crossplane can send them; and for the CRD of a kind that has none there, for
// another version may.
func (s *state) requireSchemas(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	kinds := s.unseen()
	if len(kinds) == 0 || !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return
	}

	if rsp.GetRequirements().GetSchemas() == nil {
		rsp.Requirements.Schemas = map[string]*fnv1.SchemaSelector{}
	}

	for _, gvk := range kinds {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		rsp.Requirements.Schemas[schemaKey(gvk)] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: kind}

		if !ungated(req, gvk) {
			continue
		}

		// Of its name the plural is a guess, and nearly always right. Where it is not, the kind counts as one without gates.
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		sel := selectorFor(kindDefinition, nil)
		sel.ApiVersion, sel.Match = definitions, &fnv1.ResourceSelector_MatchName{MatchName: gvr.GroupResource().String()}
		s.want(req, rsp, keyDefinition+gvk.GroupKind().String(), sel)
	}
}

// CRDs, as they are asked for.
const (
	definitions    = "apiextensions.k8s.io/v1"
	kindDefinition = "CustomResourceDefinition"
)

// want asks for one more resource.
func (s *state) want(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, key string, sel *fnv1.ResourceSelector) {
	if rsp.Requirements.Resources == nil {
		rsp.Requirements.Resources = map[string]*fnv1.ResourceSelector{}
	}

	rsp.Requirements.Resources[key] = sel
	_, ok := sent(req)[key]
	s.awaited = s.awaited || !ok
}

// unseen are the kinds of managed resources, in the versions desired, that no observed one shows with
// spec.managementPolicies.
func (s *state) unseen() []schema.GroupVersionKind {
	kinds := map[string]schema.GroupVersionKind{}

	for name, u := range s.desired {
		observed := s.observed[name]
		if resource.IsManaged(u) && (observed == nil || observed.GroupVersionKind() != u.GroupVersionKind() ||
			resource.Map(observed.Object, "spec")["managementPolicies"] == nil) {
			kinds[u.GroupVersionKind().String()] = u.GroupVersionKind()
		}
	}

	out := make([]schema.GroupVersionKind, 0, len(kinds))
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, kinds[key])
	}

	return out
}

func schemaKey(gvk schema.GroupVersionKind) string {
	apiVersion, kind := gvk.ToAPIVersionAndKind()

	return keySchema + apiVersion + "/" + kind
}

// ungated reports whether a kind's schema is there, and has no
// spec.managementPolicies.
func ungated(req *fnv1.RunFunctionRequest, gvk schema.GroupVersionKind) bool {
	root := req.GetRequiredSchemas()[schemaKey(gvk)].GetOpenapiV3()
	spec := root.GetFields()["properties"].GetStructValue().GetFields()["spec"].GetStructValue().GetFields()["properties"].GetStructValue()

	return spec != nil && spec.GetFields()["managementPolicies"] == nil
}

// gatedIn is the version in which a kind that has no spec.managementPolicies in the one desired has it; empty where none has, or
// its CRD was not sent.
func gatedIn(req *fnv1.RunFunctionRequest, gvk schema.GroupVersionKind) string {
	crd := schema.FromAPIVersionAndKind(definitions, kindDefinition)

	for _, obj := range given(req, keyDefinition+gvk.GroupKind().String(), crd) {
		for _, v := range resource.List(obj, "spec", "versions") {
			version, _ := v.(map[string]any)
			fields := resource.Map(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")

			if version["served"] == true && fields["managementPolicies"] != nil {
				return resource.String(version, "name")
			}
		}
	}

	return ""
}
