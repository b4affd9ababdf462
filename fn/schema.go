// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"maps"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keySchema starts the keys of the schemas the function asks for.
const keySchema = "kausality.io/schema/"

// requireSchemas asks for the schemas of the managed resources that are to be
// made, where Crossplane can send them: a kind without spec.managementPolicies
// must be made without. Of what is there, the object itself shows it.
func (s *state) requireSchemas(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	kinds := s.created()
	if len(kinds) == 0 || !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return
	}

	if rsp.GetRequirements().GetSchemas() == nil {
		rsp.Requirements.Schemas = map[string]*fnv1.SchemaSelector{}
	}

	for _, gvk := range kinds {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		rsp.Requirements.Schemas[schemaKey(gvk)] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: kind}
	}
}

// created are the kinds of managed resources that are to be made.
func (s *state) created() []schema.GroupVersionKind {
	kinds := map[string]schema.GroupVersionKind{}

	for name, u := range s.desired {
		if s.observed[name] == nil && resource.IsManaged(u) {
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
