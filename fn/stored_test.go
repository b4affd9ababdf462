// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// managerOf is Crossplane's field manager for what an XR composes.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0,
// internal/controller/apiextensions/composite/composition_functions.go.
func managerOf(xr *unstructured.Unstructured) string {
	hash := sha256.Sum256([]byte(xr.GetName() + xr.GroupVersionKind().GroupKind().String()))

	return fmt.Sprintf("apiextensions.crossplane.io/composed/%x", hash)
}

// instances is the schema of RDSInstances, as far as it says how lists merge.
const instances = `{
  "type": "object",
  "x-kubernetes-group-version-kind": [{"group": "rds.aws.upbound.io", "version": "v1beta1", "kind": "RDSInstance"}],
  "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"},
    "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
      "forProvider": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
          "items": {"type": "object", "required": ["name"], "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"name": {"type": "string"}}}}}}}}}}`

// stored is what an API server keeps of an object that Crossplane applied: what
// merges how is its kind's schema's to say, and what was left out is filled in.
func stored(t *testing.T, u *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	t.Helper()

	server := managedfieldstest.NewTestFieldManager(converter(t, u), u.GroupVersionKind())

	wish := u.DeepCopy()
	wish.SetManagedFields(nil)
	delete(wish.Object, "status")

	if err := server.Apply(wish, manager, true); err != nil {
		t.Fatal(err)
	}

	out := u.DeepCopy()
	fill(out.Object)

	entries := make([]metav1.ManagedFieldsEntry, 0, len(server.ManagedFields()))

	for _, e := range server.ManagedFields() {
		e.Time = nil
		entries = append(entries, e)
	}

	out.SetManagedFields(entries)

	return out
}

// converter knows how the fields of an object's kind merge.
func converter(t *testing.T, u *unstructured.Unstructured) managedfields.TypeConverter {
	t.Helper()

	if scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		return applyconfigurations.NewTypeConverter(scheme.Scheme)
	}

	sch := &spec.Schema{}
	if err := json.Unmarshal([]byte(instances), sch); err != nil {
		t.Fatal(err)
	}

	out, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"io.upbound.aws.rds.v1beta1.RDSInstance": sch}, false)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// defaults are of fields that a list's elements have, by the field's name.
var defaults = map[string]map[string]any{
	"containers": {"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log", "resources": map[string]any{}},
	"ports":      {"protocol": "TCP"},
	"rules":      {"description": ""},
}

// fill fills in what was left out, and leaves out what is empty where the API
// server's types do.
func fill(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			fill(e)

			list, _ := e.([]any)
			for _, element := range list {
				m, ok := element.(map[string]any)
				for name, def := range defaults[key] {
					if _, has := m[name]; ok && !has {
						m[name] = def
					}
				}
			}

			if list != nil && len(list) == 0 && key == "args" || e == false && key == "hostNetwork" || e == "" && key == "value" {
				delete(v, key)
			}
		}
	case []any:
		for _, e := range v {
			fill(e)
		}
	}
}
