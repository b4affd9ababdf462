// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package chart_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestTheAPIServersSchemasAcceptWhatTheChartMakes has kubeconform judge it by the
// schemas that our API server publishes.
func TestTheAPIServersSchemasAcceptWhatTheChartMakes(t *testing.T) {
	t.Parallel()

	path, err := tool(t.Context(), "kubeconform")
	if err != nil {
		t.Fatal(err)
	}

	schemas := writeSchemas(t)
	check := func(text []byte) (string, error) {
		cmd := exec.CommandContext(t.Context(), path, "-strict", "-summary", "-output=json",
			"-schema-location="+schemas+"/{{.ResourceKind}}{{.KindSuffix}}.json")
		cmd.Stdin = bytes.NewReader(text)

		out, err := cmd.CombinedOutput()

		return string(out), err
	}

	for name, tc := range sets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := render(t, tc.values, "--include-crds")
			if err != nil {
				t.Fatal(err)
			}

			if out, err := check(text); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}

	t.Run("Wrong", func(t *testing.T) {
		t.Parallel()

		text, err := render(t, "webhook: {certificate: {from: cert-manager}}")
		if err != nil {
			t.Fatal(err)
		}

		// What it would not see would be worth nothing.
		for old, with := range map[string]string{
			"readOnlyRootFilesystem": "readOnlyRootFileSystem", "replicas: 2": "replicas: two", "maxSkew: 1": "maxSkew: [1]",
			"serviceAccountName:": "serviceAccountname:", "issuerRef:": "issuer:", "dnsNames:": "dnsName:",
		} {
			if out, err := check(bytes.Replace(text, []byte(old), []byte(with), 1)); err == nil || !strings.Contains(out, "statusInvalid") {
				t.Errorf("%s: %v: %s", with, err, out)
			}
		}
	})
}

// writeSchemas writes the schemas of the API server's kinds and of ours, one file
// for each, and returns their directory.
func writeSchemas(t *testing.T) string {
	t.Helper()

	applyCRDs(t)

	dir := t.TempDir()

	disco, err := discovery.NewDiscoveryClientForConfig(running.Config())
	if err != nil {
		t.Fatal(err)
	}

	paths, err := disco.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}

	for path, gv := range paths {
		if !strings.HasPrefix(path, "api") || !strings.Contains(path, "/v") {
			continue
		}

		raw, err := gv.Schema("application/json")
		if err != nil {
			t.Fatal(err)
		}

		doc := map[string]any{}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}

		writeKinds(t, dir, doc)
	}

	return dir
}

// writeKinds writes the kinds of a document of OpenAPI v3.
func writeKinds(t *testing.T, dir string, doc map[string]any) {
	t.Helper()

	schemas := resource.Map(doc, "components", "schemas")
	seal(schemas)

	for name, s := range schemas {
		s, ok := s.(map[string]any)
		if !ok {
			continue
		}

		for _, gvk := range resource.List(s, "x-kubernetes-group-version-kind") {
			gvk, ok := gvk.(map[string]any)
			if !ok {
				continue
			}

			raw, err := json.Marshal(map[string]any{
				"$schema":    "http://json-schema.org/draft-07/schema#",
				"allOf":      []any{map[string]any{"$ref": "#/components/schemas/" + name}},
				"components": map[string]any{"schemas": schemas},
			})
			if err != nil {
				t.Fatal(err)
			}

			// As kubeconform names them: in lower case, the group up to its first dot.
			group, _, _ := strings.Cut(resource.String(gvk, "group"), ".")
			file := strings.TrimSuffix(resource.String(gvk, "kind")+"-"+group, "-") + "-" + resource.String(gvk, "version") + ".json"

			if err := os.WriteFile(filepath.Join(dir, strings.ToLower(file)), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// seal has schemas of objects refuse fields that they do not know, and takes out
// what only OpenAPI understands.
func seal(doc any) {
	switch s := doc.(type) {
	case []any:
		for _, v := range s {
			seal(v)
		}
	case map[string]any:
		_, named := s["properties"].(map[string]any)
		_, open := s["additionalProperties"]
		kept, _ := s["x-kubernetes-preserve-unknown-fields"].(bool)

		if named && !open && !kept {
			s["additionalProperties"] = false
		}

		for _, v := range s {
			seal(v)
		}
	}
}

// applyCRDs applies our CRDs as the chart has them, and those of others, and
// waits until their kinds are served.
func applyCRDs(t *testing.T) {
	t.Helper()

	c := world.Connect(t, running.Config())

	text, err := render(t, "", "--include-crds")
	if err != nil {
		t.Fatal(err)
	}

	for _, u := range append(world.Parse(t, text), foreignCRDs(t)...) {
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}

		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}

		for _, version := range resource.List(u.Object, "spec", "versions") {
			gvk := schema.GroupVersionKind{Group: resource.String(u.Object, "spec", "group"), Kind: resource.String(u.Object, "spec", "names", "kind")}
			if version, ok := version.(map[string]any); ok {
				gvk.Version = resource.String(version, "name")
			}

			world.Eventually(t, "schema of "+gvk.String(), published(gvk))
		}
	}
}

// published reports whether the API server publishes the schema of a kind.
func published(gvk schema.GroupVersionKind) func(context.Context) error {
	return func(context.Context) error {
		disco, err := discovery.NewDiscoveryClientForConfig(running.Config())
		if err != nil {
			return fmt.Errorf("cannot make a client: %w", err)
		}

		paths, err := disco.OpenAPIV3().Paths()
		if err != nil {
			return fmt.Errorf("cannot list schemas: %w", err)
		}

		gv, ok := paths["apis/"+gvk.GroupVersion().String()]
		if !ok {
			return fmt.Errorf("group %s: %w", gvk.Group, world.ErrOther)
		}

		raw, err := gv.Schema("application/json")
		if err != nil {
			return fmt.Errorf("cannot get schemas of %s: %w", gvk.Group, err)
		}

		if !bytes.Contains(raw, []byte(`"kind":"`+gvk.Kind+`"`)) {
			return fmt.Errorf("kind %s: %w", gvk.Kind, world.ErrOther)
		}

		return nil
	}
}

// served reports whether the API server serves a kind of ours.
func served(c client.Client, kind string) func(context.Context) error {
	return func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind + "List"))

		return c.List(ctx, list)
	}
}
