// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package chart_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/test/world"
)

// foreignCRDs are those of others whose objects the chart makes where its values
// say so, of the versions that the modules here pin.
func foreignCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()

	var out []*unstructured.Unstructured

	for _, from := range []struct {
		pins, module, dir string
		files             []string
	}{
		{
			pins: "foreign", module: "github.com/cert-manager/cert-manager", dir: "deploy/crds",
			files: []string{"cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"},
		},
		{
			pins: "foreign", module: "github.com/prometheus-operator/prometheus-operator", dir: "example/prometheus-operator-crd",
			files: []string{"monitoring.coreos.com_servicemonitors.yaml", "monitoring.coreos.com_podmonitors.yaml"},
		},
		{
			pins: "../stack/modules/crossplane", module: "github.com/crossplane/crossplane/v2", dir: "cluster/crds",
			files: []string{"pkg.crossplane.io_functions.yaml", "pkg.crossplane.io_deploymentruntimeconfigs.yaml"},
		},
	} {
		for _, file := range from.files {
			raw, err := os.ReadFile(filepath.Join(moduleDir(t, from.pins, from.module), from.dir, file))
			if err != nil {
				t.Fatal(err)
			}

			out = append(out, world.Parse(t, raw)...)
		}
	}

	return out
}

// moduleDir fetches a module, at the version that a go.mod pins, and returns
// where its files are.
func moduleDir(t *testing.T, pins, module string) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = pins
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")

	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot fetch module %s: %v: %s", module, err, text)
	}

	fetched := struct {
		Dir string `json:"Dir"`
	}{}
	if err := json.Unmarshal(text, &fetched); err != nil {
		t.Fatal(err)
	}

	return fetched.Dir
}
