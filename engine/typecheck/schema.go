// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"maps"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

func isObject(s *spec.Schema) bool { return len(s.Type) == 1 && s.Type.Contains("object") }

// isOpen reports whether an object may have fields its schema does not name.
func isOpen(s *spec.Schema) bool {
	more := s.AdditionalProperties

	return isSet(s, "x-kubernetes-preserve-unknown-fields") || more != nil && (more.Allows || more.Schema != nil)
}

func isSet(s *spec.Schema, extension string) bool {
	on, _ := s.Extensions.GetBool(extension)

	return on
}

// Properties that several schemas have.
const (
	propertyKind = "kind"
	propertyName = "name"
)

// withObjectMeta returns a schema with the fields that every resource has,
// whatever its schema says of them.
func withObjectMeta(s *spec.Schema) *spec.Schema {
	out := *s
	out.Properties = map[string]spec.Schema{}
	maps.Copy(out.Properties, s.Properties)
	maps.Copy(out.Properties, map[string]spec.Schema{
		"apiVersion": *spec.StringProperty(),
		propertyKind: *spec.StringProperty(),
		"metadata":   objectMetaSchema(),
	})

	if len(s.Properties) == 0 {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true}
	}

	return &out
}

func objectMetaSchema() spec.Schema {
	text, number, flag := *spec.StringProperty(), *spec.Int64Property(), *spec.BooleanProperty()
	texts := *spec.MapProperty(&text)
	owner := objectSchema(map[string]spec.Schema{
		"apiVersion": text, propertyKind: text, propertyName: text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
	})

	return objectSchema(map[string]spec.Schema{
		propertyName: text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text, "selfLink": text,
		"generation": number, "deletionGracePeriodSeconds": number,
		"creationTimestamp": text, "deletionTimestamp": text,
		"labels": texts, "annotations": texts,
		"finalizers": *spec.ArrayProperty(&text), "ownerReferences": *spec.ArrayProperty(&owner),
		"managedFields": *spec.ArrayProperty(&spec.Schema{}),
	})
}

// requestSchema is that of a request, as decisions give it to expressions.
func requestSchema() *spec.Schema {
	text := *spec.StringProperty()
	texts := *spec.ArrayProperty(&text)
	user := objectSchema(map[string]spec.Schema{"username": text, "uid": text, "groups": texts, "extra": *spec.MapProperty(&texts)})
	out := objectSchema(map[string]spec.Schema{
		"operation": text, propertyName: text, "namespace": text, "userInfo": user, "subResource": text,
		propertyKind: objectSchema(map[string]spec.Schema{"group": text, "version": text, propertyKind: text}),
		"resource":   objectSchema(map[string]spec.Schema{"group": text, "version": text, "resource": text}),
		"dryRun":     *spec.BooleanProperty(), "options": {},
	})

	return &out
}

func namespaceSchema() *spec.Schema {
	out := objectSchema(map[string]spec.Schema{"spec": {}, "status": {}})

	return withObjectMeta(&out)
}

func objectSchema(properties map[string]spec.Schema) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
}
