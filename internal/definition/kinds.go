// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kausality-io/kausality-crossplane/engine/check"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/internal/builtin"
)

// Kinds are those that are defined. It is for one goroutine at a time.
type Kinds struct {
	served   []kind.Served
	schemas  map[schema.GroupVersionKind]*spec.Schema
	composed []check.Composed
}

// NewKinds makes Kinds with those of Kubernetes itself.
func NewKinds() *Kinds {
	return &Kinds{served: builtin.Kinds(), schemas: map[schema.GroupVersionKind]*spec.Schema{}}
}

// Served are the kinds, each in its preferred version, ordered; not to be modified.
func (k *Kinds) Served() []kind.Served {
	slices.SortStableFunc(k.served, func(a, b kind.Served) int { return strings.Compare(a.GVK.String(), b.GVK.String()) })

	return k.served
}

// Composed are the kinds of which it is known what is made for their objects.
func (k *Kinds) Composed() []check.Composed { return k.composed }

// Schema is that of a kind; nil for none.
func (k *Kinds) Schema(gvk schema.GroupVersionKind) *spec.Schema {
	out, ok := k.schemas[gvk]
	if !ok {
		out = builtin.Schema(gvk)
		k.schemas[gvk] = out
	}

	return out
}

// AddCRD adds the kind that a CRD defines. One that is defined twice is as it was defined
// last.
func (k *Kinds) AddCRD(crd *extv1.CustomResourceDefinition) error {
	names, group := crd.Spec.Names, crd.Spec.Group
	if enforcement.Beyond(schema.GroupResource{Group: group, Resource: names.Plural}) {
		return nil // It cannot be governed.
	}

	var preferred *extv1.CustomResourceDefinitionVersion

	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if !v.Served {
			continue
		}

		gvk := schema.GroupVersionKind{Group: group, Version: v.Name, Kind: names.Kind}

		k.schemas[gvk] = nil

		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			s, err := schemaOf(v.Schema.OpenAPIV3Schema)
			if err != nil {
				return fmt.Errorf("cannot read the schema of %s: %w", gvk, err)
			}

			k.schemas[gvk] = s
		}

		if preferred == nil || version.CompareKubeAwareVersionStrings(v.Name, preferred.Name) > 0 {
			preferred = v
		}
	}

	k.served = slices.DeleteFunc(k.served, func(s kind.Served) bool {
		return s.GVK.GroupKind() == schema.GroupKind{Group: group, Kind: names.Kind}
	})

	if preferred != nil {
		k.served = append(k.served, servedOf(crd, preferred))
	}

	return nil
}

// schemaOf is a schema of a CRD as the API server publishes it.
func schemaOf(in *extv1.JSONSchemaProps) (*spec.Schema, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}

	out := &spec.Schema{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}

	return out, nil
}

// servedOf is the kind of a CRD as a version of it serves it.
func servedOf(crd *extv1.CustomResourceDefinition, v *extv1.CustomResourceDefinitionVersion) kind.Served {
	names := crd.Spec.Names
	out := kind.Served{
		GVK:      schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind},
		Resource: names.Plural,
		Owns:     !slices.Contains(names.Categories, "managed"),
		Crossplane: slices.ContainsFunc(names.Categories, func(c string) bool {
			return c == "composite" || c == "claim"
		}),
	}

	if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
		out.Managed, out.Ungateable = kind.OfProvider(func(field string) bool {
			_, ok := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties[field]

			return ok
		})
	}

	return out
}
