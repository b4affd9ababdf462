// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Ending is what becomes of the external object of a managed resource that is
// being deleted.
type Ending string

// Endings.
const (
	// Asked is one that somebody asked for: the external object is deleted, or
	// is to stay.
	Asked Ending = "Asked"
	// Awaited is one that was asked for and that the gate is not open for yet.
	Awaited Ending = "Awaited"
	// LeftBehind is one that is not allowed: the provider releases the
	// external object without deleting it.
	LeftBehind Ending = "LeftBehind"
)

// EndingOf says how a managed resource ends that is being deleted.
func EndingOf(u *unstructured.Unstructured) Ending {
	switch {
	case managed.Kept(u) != "" && !managed.Untouched(u):
		return LeftBehind
	case gate.MayDelete(u):
		return Asked
	case gate.AwaitsDelete(u) && slices.Contains(u.GetFinalizers(), managed.ProviderFinalizer):
		return Awaited
	default:
		return LeftBehind
	}
}

// ExternalName is what a managed resource's external object is called there.
func ExternalName(u *unstructured.Unstructured) string {
	if name := resource.Annotation(u, identity.AnnotationExternalName); name != "" {
		return name
	}

	return resource.Name(u)
}

// ProviderConfig names what the provider reaches the external system with, as
// KIND/NAME where the kind is known; empty for the default one.
func ProviderConfig(u *unstructured.Unstructured) string {
	ref := resource.Map(u.Object, "spec", "providerConfigRef")

	name, kind := resource.String(ref, fieldName), resource.String(ref, fieldKind)
	if kind == "" || name == "" {
		return name
	}

	return kind + "/" + name
}

// Identity returns what the external system says the external object is, as far
// as the status shows it: by the fields that providers store identifiers in, and
// by its manifest for an object of Kubernetes.
func Identity(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	at := resource.Map(u.Object, "status", "atProvider")

	for _, key := range []string{"arn", "id", fieldName, "selfLink", "uid"} {
		if v := resource.String(at, key); v != "" {
			out[key] = v
		}
	}

	manifest := resource.Map(at, "manifest")

	for name, path := range map[string][]string{
		fieldAPIVersion: {fieldAPIVersion}, fieldKind: {fieldKind}, "uid": {fieldMetadata, "uid"},
		"namespace": {fieldMetadata, "namespace"}, fieldName: {fieldMetadata, fieldName},
	} {
		if v := resource.String(manifest, path...); v != "" {
			out[name] = v
		}
	}

	return out
}
