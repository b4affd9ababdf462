// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package linter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/typecheck"
)

// elsewhere are, by kind, the fields of managed resources by which their providers read what else they apply: the group is without
// the .m of namespaced kinds.
//
// Sources: github.com/crossplane-contrib/provider-kubernetes v1.2.1, apis/cluster/object/v1alpha2, Reference;
// github.com/crossplane-contrib/provider-helm at 01ef5f4d, apis/cluster/release/v1beta1, ReleaseParameters and ValuesSpec;
// github.com/upbound/provider-terraform and provider-opentofu, WorkspaceParameters.
func elsewhere() map[schema.GroupKind][]string {
	return map[schema.GroupKind][]string{
		{Group: "kubernetes.crossplane.io", Kind: "Object"}: {"patchesFrom"},
		{Group: "helm.crossplane.io", Kind: "Release"}:      {"valuesFrom", "valueFrom", "patchesFrom"},
		{Group: "tf.upbound.io", Kind: "Workspace"}:         {"varFiles"},
		{Group: "opentofu.upbound.io", Kind: "Workspace"}:   {"varFiles"},
	}
}

// readsElsewhere finds the composed resources of a Composition that apply what their providers read elsewhere.
func (r *run) readsElsewhere(i int, v any, path string) {
	switch v := v.(type) {
	case []any:
		for j, e := range v {
			r.readsElsewhere(i, e, fmt.Sprintf("%s[%d]", path, j))
		}
	case map[string]any:
		apiVersion, _ := v["apiVersion"].(string)
		kind, _ := v["kind"].(string)
		gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
		gk.Group = strings.Replace(gk.Group, ".m.", ".", 1)

		for _, field := range elsewhere()[gk] {
			if at := find(v, field, path); at != "" {
				r.found = append(r.found, typecheck.Finding{
					Item: i, Rule: typecheck.ReadsElsewhere, Severity: typecheck.Note, Field: at,
					Message: fmt.Sprintf("the provider of %s reads what %s names: a change there goes out with the next allowed change", kind, field),
					Remedy:  "compose the value, or let nobody else change the object that has it",
				})
			}
		}

		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.readsElsewhere(i, v[key], below(path, key))
		}
	}
}

// find returns where a field of a name is, the first by path; empty where it is not.
func find(v any, name, path string) string {
	switch v := v.(type) {
	case []any:
		for j, e := range v {
			if at := find(e, name, fmt.Sprintf("%s[%d]", path, j)); at != "" {
				return at
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == name {
				return below(path, key)
			}

			if at := find(v[key], name, below(path, key)); at != "" {
				return at
			}
		}
	}

	return ""
}

// below is the path of a field of what has a path.
func below(path, key string) string {
	if path == "" {
		return key
	}

	return path + "." + key
}
