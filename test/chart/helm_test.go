// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	root    = "../.."
	chart   = root + "/package/chart"
	release = "kausality"
	// home is the namespace of the release.
	home = "kausality-system"
	// kubeVersion is that of the API server of the tests; Helm built from source
	// knows of none.
	kubeVersion = "1.37.2"
)

// tool builds a tool of a module below tools/ where need be, and returns where it
// is.
func tool(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, root+"/hack/tools.sh", "tools/"+name)
	cmd.Stderr = os.Stderr

	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot build %s: %w", name, err)
	}

	return filepath.Join(strings.TrimSpace(string(out)), name), nil
}

// helm runs Helm, with a home of its own.
func helm(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()

	path, err := tool(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}

	// go test takes results from its cache unless what the test itself has read changed: so it reads what
	// Helm reads.
	if err := filepath.WalkDir(chart, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}

		return err
	}); err != nil {
		t.Fatal(err)
	}

	var out, problem bytes.Buffer

	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = &out, &problem

	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("helm %s: %w: %s%s", args[0], err, problem.String(), out.String())
	}

	return out.Bytes(), nil
}

// render renders the chart with values in YAML, and flags of helm template.
func render(t *testing.T, values string, flags ...string) ([]byte, error) {
	t.Helper()

	args := []string{"template", release, chart, "--namespace", home, "--kube-version", kubeVersion, "--values", valuesFile(t, values)}

	return helm(t, slices.Concat(args, flags)...)
}

// valuesFile writes values in YAML to a file.
func valuesFile(t *testing.T, values string) string {
	t.Helper()

	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

// find returns the object of a kind and name; nil where there is none.
func find(list []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(list, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i < 0 {
		return nil
	}

	return list[i]
}
