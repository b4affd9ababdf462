// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const schemaRef = "#/components/schemas/"

// schemas reads the API server's schemas, and keeps them.
type schemas struct {
	client openapi.Client

	mu   sync.Mutex
	docs map[string]*spec3.OpenAPI
	done map[schema.GroupVersionKind]*structpb.Struct
}

// sent is a kind's schema as Crossplane sends it: without references. Of a kind
// that there is none of it is empty.
func (s *schemas) sent(gvk schema.GroupVersionKind) (*fnv1.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if st, ok := s.done[gvk]; ok {
		return &fnv1.Schema{OpenapiV3: st}, nil
	}

	doc, err := s.doc(gvk.GroupVersion())
	if err != nil {
		return nil, err
	}

	st, err := flattened(doc, gvk)
	if err != nil {
		return nil, err
	}

	s.done[gvk] = st

	return &fnv1.Schema{OpenapiV3: st}, nil
}

func (s *schemas) doc(gv schema.GroupVersion) (*spec3.OpenAPI, error) {
	key := "apis/" + gv.String()
	if gv.Group == "" {
		key = "api/" + gv.Version
	}

	if doc, ok := s.docs[key]; ok {
		return doc, nil
	}

	paths, err := s.client.Paths()
	if err != nil {
		return nil, fmt.Errorf("cannot list schemas: %w", err)
	}

	doc := &spec3.OpenAPI{}

	if p, ok := paths[key]; ok {
		raw, err := p.Schema("application/json")
		if err != nil {
			return nil, fmt.Errorf("cannot get schemas of %q: %w", key, err)
		}

		if err := json.Unmarshal(raw, doc); err != nil {
			return nil, fmt.Errorf("cannot read schemas of %q: %w", key, err)
		}
	}

	s.docs[key] = doc

	return doc, nil
}

// flattened is the schema of a kind in a document.
func flattened(doc *spec3.OpenAPI, gvk schema.GroupVersionKind) (*structpb.Struct, error) {
	if doc.Components == nil {
		return nil, nil //nolint:nilnil // Crossplane sends an empty schema then.
	}

	for name, sch := range doc.Components.Schemas {
		if !describes(sch, gvk) {
			continue
		}

		flat, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
			found, ok := doc.Components.Schemas[strings.TrimPrefix(ref, schemaRef)]

			return found, ok
		}, schemaRef+name)
		if err != nil {
			return nil, fmt.Errorf("cannot flatten schema %q: %w", name, err)
		}

		raw, err := json.Marshal(flat)
		if err != nil {
			return nil, fmt.Errorf("cannot write schema %q: %w", name, err)
		}

		st := &structpb.Struct{}

		err = st.UnmarshalJSON(raw)

		return st, err
	}

	return nil, nil //nolint:nilnil // As above.
}

func describes(sch *spec.Schema, gvk schema.GroupVersionKind) bool {
	kinds, ok := sch.Extensions["x-kubernetes-group-version-kind"].([]any)
	if !ok || len(kinds) != 1 {
		return false
	}

	m, ok := kinds[0].(map[string]any)

	return ok && m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind
}

// node is a place in a schema.
type node map[string]any

// merged is a schema with what it says by allOf.
func (n node) merged() node {
	parts, ok := n["allOf"].([]any)
	if !ok {
		return n
	}

	out := maps.Clone(n)

	for _, p := range parts {
		for key, v := range node(asMap(p)).merged() {
			if _, has := out[key]; !has {
				out[key] = v
			}
		}
	}

	return out
}

// below is the schema of a field or of an element; nil where none is known.
func (n node) below(e any) node {
	n = n.merged()

	if _, ok := e.(int); ok {
		items, _ := n["items"].(map[string]any)

		return items
	}

	properties, _ := n["properties"].(map[string]any)
	if p, ok := properties[asText(e)].(map[string]any); ok {
		return p
	}

	additional, _ := n["additionalProperties"].(map[string]any)

	return additional
}

// keys are the keys of a list of objects that is merged by them.
func (n node) keys() []string {
	m := n.merged()
	if m["x-kubernetes-list-type"] != "map" {
		return nil
	}

	list, _ := m["x-kubernetes-list-map-keys"].([]any)

	out := make([]string, len(list))
	for i, key := range list {
		out[i] = asText(key)
	}

	return out
}

// whole reports whether a map or list is applied as a whole or not at all.
func (n node) whole(v any) bool {
	m := n.merged()

	if _, ok := v.([]any); ok {
		return m["x-kubernetes-list-type"] != "map" && m["x-kubernetes-list-type"] != "set"
	}

	return m["x-kubernetes-map-type"] == "atomic"
}

func newSchemas(c openapi.Client) *schemas {
	return &schemas{client: c, docs: map[string]*spec3.OpenAPI{}, done: map[schema.GroupVersionKind]*structpb.Struct{}}
}
