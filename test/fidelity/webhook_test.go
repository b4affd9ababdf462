// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fidelity_test

import (
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// mirror is where the webhook has images come from.
const mirror = "mirror.example.org/"

// rewriting starts a webhook that rewrites what is written in namespaces with
// the label rewrite.
func rewriting(t *testing.T, c client.Client) {
	t.Helper()

	world.Rewrites(t, c, admissionregistrationv1.MutatingWebhook{
		Name:              "rewriting.example.org",
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"rewrite": "all"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: new(admissionregistrationv1.NamespacedScope),
			},
		}},
	}, rewrite)
}

// rewrite is a patch that replaces what is rewritten.
func rewrite(obj map[string]any) []map[string]any {
	var patch []map[string]any

	for key, v := range gated(obj) {
		if now := rewritten(obj, key, runtime.DeepCopyJSONValue(v)); !reflect.DeepEqual(v, now) {
			patch = append(patch, map[string]any{"op": "replace", "path": "/" + key, "value": now})
		}
	}

	return patch
}

// rewritten is a field as the webhook wants it. Asked again, it changes nothing.
func rewritten(obj map[string]any, key string, v any) any {
	switch obj["kind"] {
	case "ConfigMap":
		if data, ok := v.(map[string]any); ok && key == "data" {
			for k, e := range data {
				data[k] = strings.ToUpper(asText(e))
			}

			data["added"] = "BY THE WEBHOOK"
		}
	case "Gadget":
		if spec, ok := v.(map[string]any); ok && spec["size"] != nil {
			spec["size"] = strings.ToUpper(asText(spec["size"]))
		}
	default:
		rewriteContainers(v)
	}

	return v
}

// rewriteContainers has images come from a mirror, and adds a container and an
// environment variable, wherever containers are.
func rewriteContainers(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}

	if list, ok := m["containers"].([]any); ok {
		injected := false

		for _, e := range list {
			container := asMap(e)
			if image, ok := container["image"].(string); ok && !strings.HasPrefix(image, mirror) {
				container["image"] = mirror + image
			}

			injected = injected || container["name"] == "injected"
		}

		if !injected {
			m["containers"] = append(list, map[string]any{"name": "injected", "image": mirror + "proxy"})
		}

		return
	}

	for _, e := range m {
		rewriteContainers(e)
	}
}
