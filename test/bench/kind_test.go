// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package bench_test

import (
	"fmt"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	group     = "bench.example.org"
	namespace = "default"
)

// approach is who is asked about the writes of a kind, as the names of benchmarks say it.
type approach string

const (
	// byKausality is us.
	byKausality approach = "kausality"
	// byNone is nobody.
	byNone approach = "none"
	// byAllowAll is a webhook of the same framework, with the same configuration, that allows everything.
	byAllowAll approach = "allow-all"
	// byStamp is one that allows everything and writes annotations as long as ours: what the API server
	// takes to store what a webhook records, whoever that is.
	byStamp approach = "stamp"
	// byPolicy is a ValidatingAdmissionPolicy with the same expression.
	byPolicy approach = "validatingadmissionpolicy"
)

func approaches() []approach { return []approach{byKausality, byNone, byAllowAll, byStamp, byPolicy} }

// role is what is written.
type role string

const (
	// child has a parent, whose allowance covers the change; who makes it may not start anything.
	child role = "Child"
	// root has no parent. Who changes it may start a chain, for the expression holds: the change is
	// stamped, and what may follow from it too.
	root role = "Root"
)

func roles() []role { return []role{child, root} }

// expression is true of all objects here. The ValidatingAdmissionPolicy checks it on each write, and our
// policy where a root changes.
const expression = "'jira' in object.metadata.annotations"

// Kinds beside those that are measured.
const (
	// kindOwner is the parent of all children.
	kindOwner = "Owner"
	// kindParent is the one there are many of, where memory is measured.
	kindParent = "Parent"
)

// kindOf is the kind that stands for an approach in a role.
func kindOf(a approach, r role) string {
	name := map[approach]string{byKausality: "Kausality", byNone: "None", byAllowAll: "AllowAll", byStamp: "Stamp", byPolicy: "Policy"}[a]

	return name + string(r)
}

func gvkOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// resourceOf is the plural name of a kind.
func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// resourcesOf are those of an approach.
func resourcesOf(a approach) []string {
	out := make([]string, 0, len(roles()))
	for _, r := range roles() {
		out = append(out, resourceOf(kindOf(a, r)))
	}

	return out
}

// crd defines a kind. All have the same schema.
func crd(kind string) *extv1.CustomResourceDefinition {
	integer, text := extv1.JSONSchemaProps{Type: "integer"}, extv1.JSONSchemaProps{Type: "string"}
	keep := true

	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resourceOf(kind) + "." + group},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: group, Scope: extv1.NamespaceScoped,
			Names: extv1.CustomResourceDefinitionNames{Kind: kind, Plural: resourceOf(kind)},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &extv1.CustomResourceSubresources{Status: &extv1.CustomResourceSubresourceStatus{}},
				Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]extv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]extv1.JSONSchemaProps{
							"size": integer,
							"settings": {
								Type: "object", AdditionalProperties: &extv1.JSONSchemaPropsOrBool{Schema: &text},
							},
						}},
						"status": {Type: "object", XPreserveUnknownFields: &keep},
					},
				}},
			}},
		},
	}
}

// settings are how many settings each object has, of some 55 bytes: an object is 2 KiB then.
const settings = 36

// newObject makes an object of some 2 KiB, without what the API server adds.
func newObject(kind, name string) *unstructured.Unstructured {
	values := map[string]any{}
	for i := range settings {
		values[fmt.Sprintf("setting-%02d", i)] = fmt.Sprintf("the value of setting %d of %s", i, name)
	}

	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"size": int64(0), "settings": values},
	}}
	u.SetGroupVersionKind(gvkOf(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetAnnotations(map[string]string{"jira": "INFRA-23232"})

	return u
}
