// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"maps"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// keySchema starts the keys of the schemas the function asks for.
const keySchema = "kausality.io/schema/"

// versions are those that providers serve their kinds in, the newest first.
func versions() []string {
	return []string{"v2", "v1", "v1beta3", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"}
}

// requireSchemas asks for the schemas of the managed resources that are to be made, or in another version, where Crossplane can
// send them: a kind without spec.managementPolicies must be made without. Of what is there, the object itself shows it. Where the
// version desired has none, it asks for the other versions that there may be: what is there is empty for one that is not.
func (s *state) requireSchemas(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	kinds := s.created()
	if len(kinds) == 0 || !request.HasCapability(req, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS) {
		return
	}

	if rsp.GetRequirements().GetSchemas() == nil {
		rsp.Requirements.Schemas = map[string]*fnv1.SchemaSelector{}
	}

	for _, gvk := range kinds {
		asked := []schema.GroupVersionKind{gvk}

		if ungated(req, gvk) {
			for _, v := range versions() {
				asked = append(asked, gvk.GroupKind().WithVersion(v))
			}
		}

		for _, gvk := range asked { // Itself, or each version.
			apiVersion, kind := gvk.ToAPIVersionAndKind()
			rsp.Requirements.Schemas[schemaKey(gvk)] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: kind}

			_, there := req.GetRequiredSchemas()[schemaKey(gvk)]
			s.awaited = s.awaited || len(asked) > 1 && !there
		}
	}
}

// created are the kinds of managed resources that are to be made, or in another version.
func (s *state) created() []schema.GroupVersionKind {
	kinds := map[string]schema.GroupVersionKind{}

	for name, u := range s.desired {
		if o := s.observed[name]; resource.IsManaged(u) && (o == nil || o.GroupVersionKind() != u.GroupVersionKind()) {
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
	fields := specOf(req, gvk)

	return fields != nil && fields["managementPolicies"] == nil
}

// specOf are the fields of the spec of a kind; nil where its schema was not sent.
func specOf(req *fnv1.RunFunctionRequest, gvk schema.GroupVersionKind) map[string]*structpb.Value {
	fields := req.GetRequiredSchemas()[schemaKey(gvk)].GetOpenapiV3().GetFields()
	for _, name := range []string{"properties", "spec", "properties"} {
		fields = fields[name].GetStructValue().GetFields()
	}

	return fields
}

// gatedIn is the version in which a kind that has no spec.managementPolicies in the one desired has it; empty where none has.
func gatedIn(req *fnv1.RunFunctionRequest, gvk schema.GroupVersionKind) string {
	i := slices.IndexFunc(versions(), func(v string) bool {
		return specOf(req, gvk.GroupKind().WithVersion(v))["managementPolicies"] != nil
	})
	if i < 0 {
		return ""
	}

	return versions()[i]
}
