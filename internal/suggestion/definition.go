// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// definition returns the CompositeResourceDefinition of a kind of XRs; nil where it is not
// known.
func (m *Material) definition(gk schema.GroupKind) *unstructured.Unstructured {
	return find(m.Definitions, func(u *unstructured.Unstructured) bool {
		return resource.String(u.Object, "spec", "group") == gk.Group && resource.String(u.Object, "spec", "names", "kind") == gk.Kind
	})
}

// claims reports whether a kind is of Claims.
func (m *Material) claims(gk schema.GroupKind) bool {
	return find(m.Definitions, func(u *unstructured.Unstructured) bool {
		return resource.String(u.Object, "spec", "group") == gk.Group && claimKind(u) == gk.Kind
	}) != nil
}

// claimKind is the kind of an XR's Claims; empty where it has none.
func claimKind(definition *unstructured.Unstructured) string {
	return resource.String(definition.Object, "spec", "claimNames", "kind")
}

// kind returns the CustomResourceDefinition of a kind; nil where it is not known.
func (m *Material) kind(gk schema.GroupKind) *unstructured.Unstructured {
	return find(m.Kinds, func(u *unstructured.Unstructured) bool {
		return resource.String(u.Object, "spec", "group") == gk.Group && resource.String(u.Object, "spec", "names", "kind") == gk.Kind
	})
}

func find(list []*unstructured.Unstructured, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}

	return nil
}

// schemaOf is the schema of a kind in a version, as its CustomResourceDefinition says, or
// that of an XR or Claim as its CompositeResourceDefinition does; nil where it is not
// known. Without a version it is that of the first one that is served.
func (m *Material) schemaOf(gvk schema.GroupVersionKind) *spec.Schema {
	u := m.kind(gvk.GroupKind())
	if u == nil {
		u = find(m.Definitions, func(u *unstructured.Unstructured) bool {
			return resource.String(u.Object, "spec", "group") == gvk.Group &&
				(resource.String(u.Object, "spec", "names", "kind") == gvk.Kind || claimKind(u) == gvk.Kind)
		})
	}

	if u == nil {
		return nil
	}

	for _, v := range resource.List(u.Object, "spec", "versions") {
		version, _ := v.(map[string]any)
		served, _ := version["served"].(bool)

		if name := resource.String(version, "name"); name == gvk.Version || gvk.Version == "" && served {
			return parseSchema(resource.Map(version, "schema", "openAPIV3Schema"))
		}
	}

	return nil
}

// parseSchema reads the schema of a definition; nil where there is none.
func parseSchema(from map[string]any) *spec.Schema {
	raw, err := json.Marshal(from)
	if err != nil || from == nil {
		return nil
	}

	out := &spec.Schema{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil
	}

	return out
}

// property is the schema of what a segment of a path leads to; nil where it is not known.
func property(s *spec.Schema, segment fieldpath.Segment) *spec.Schema {
	if s == nil {
		return nil
	}

	if s.Items != nil && s.Items.Schema != nil {
		return s.Items.Schema
	}

	if p, ok := s.Properties[segment.Field]; ok && segment.Type == fieldpath.SegmentField {
		return &p
	}

	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}

	return nil
}

// always reports whether each object has a value at a path: all of it is required, or has
// a default.
func always(s *spec.Schema, path change.Path) bool {
	for i, segment := range path {
		next := property(s, segment)
		if next == nil || segment.Type != fieldpath.SegmentField {
			return false
		}

		if i > 0 && !slices.Contains(s.Required, segment.Field) && next.Default == nil {
			return false // All that is looked at has a spec.
		}

		s = next
	}

	return true
}

// remakes is how descriptions of fields say that another value takes another external
// object: those that are generated for Terraform's providers say it in such words.
var remakes = regexp.MustCompile(`(?i)\bforc(es?|ing) (a )?(new resource|replacement|recreation)|\bforce ?new\b|` +
	`\b(can ?not|can't|may not|must not) be (changed|updated|modified)|\bimmutable\b`)

// fixed says why a field cannot be updated in place; empty where nothing says so.
func fixed(s *spec.Schema, path change.Path) string {
	for i, segment := range path {
		if s == nil {
			return ""
		}

		if rule := immutable(s, segment.Field); rule != "" && (i > 0 || segment.Field == "spec") {
			return "the API server refuses to change it (" + rule + ")"
		}

		s = property(s, segment)
	}

	if s == nil {
		return ""
	}

	if rule := immutable(s, ""); rule != "" {
		return "the API server refuses to change it (" + rule + ")"
	}

	if said := remakes.FindString(s.Description); said != "" {
		return "its description says: " + said
	}

	return ""
}

// immutable returns the rule of a schema by which it, or a field of it, stays as it is;
// empty where there is none.
func immutable(s *spec.Schema, field string) string {
	rules, _ := s.Extensions["x-kubernetes-validations"].([]any)

	for _, r := range rules {
		rule, _ := r.(map[string]any)
		text := resource.String(rule, "rule")
		plain := strings.Join(strings.Fields(text), "")

		if plain == "self==oldSelf" || plain == "oldSelf==self" ||
			field != "" && slices.Contains(strings.Split(plain, "||"), "self."+field+"==oldSelf."+field) {
			return text
		}
	}

	return ""
}
