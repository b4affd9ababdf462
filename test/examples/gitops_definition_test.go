// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestTheManifestsOfTheToolsAreValid has the tools' own definitions judge them.
func TestTheManifestsOfTheToolsAreValid(t *testing.T) {
	t.Parallel()

	c := somebody(t)

	for name, tc := range map[string]struct {
		file string
		// crds is the directory of the tool's definitions.
		crds func(context.Context) (string, error)
		kind string
	}{
		"ArgoCD": {"application.yaml", argoCDDefinitions, "application-crd.yaml"},
		"Flux":   {"kustomization.yaml", fluxDefinitions, "kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			crds, err := tc.crds(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if name == "ArgoCD" {
				takeApplications(t)
			}

			for _, u := range decodeFile(t, filepath.Join(crds, tc.kind)) {
				if err := c.Create(t.Context(), u); err != nil {
					t.Fatal(err)
				}
			}

			for _, u := range decodeFile(t, filepath.Join(dir, "gitops", tc.file)) {
				ns := &unstructured.Unstructured{}
				ns.SetAPIVersion("v1")
				ns.SetKind("Namespace")
				ns.SetName(u.GetNamespace())

				if err := client.IgnoreAlreadyExists(c.Create(t.Context(), ns)); err != nil {
					t.Fatal(err)
				}

				wrong := u.DeepCopy()
				if err := unstructured.SetNestedField(wrong.Object, true, "spec", "syncWave"); err != nil {
					t.Fatal(err)
				}

				wrong.SetName("wrong")

				strict := &client.CreateOptions{FieldValidation: "Strict"}

				if err := scenario.Eventually(t.Context(), "kind "+u.GetKind(), func(ctx context.Context) error {
					return c.Create(ctx, u, strict)
				}); err != nil {
					t.Error(err)
				}

				if err := c.Create(t.Context(), wrong, strict); err == nil || !strings.Contains(err.Error(), `unknown field "spec.syncWave"`) {
					t.Errorf("an unknown field: %v", err)
				}
			}
		})
	}
}

func decodeFile(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()

	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return world.Parse(t, raw)
}

// argoCDDefinitions is where the module of Argo CD has them.
func argoCDDefinitions(ctx context.Context) (string, error) {
	root, err := module(ctx, "argocd", "github.com/argoproj/argo-cd/v3", "")

	return filepath.Join(root, "manifests", "crds"), err
}

// fluxDefinitions is where the module of Flux's controller has them, of the version
// of its API.
func fluxDefinitions(ctx context.Context) (string, error) {
	version, err := goCommand(ctx, "flux", "list", "-m", "-f", "{{.Version}}", "github.com/fluxcd/kustomize-controller/api")
	if err != nil {
		return "", err
	}

	root, err := module(ctx, "flux", "github.com/fluxcd/kustomize-controller", "@"+strings.TrimSpace(version))

	return filepath.Join(root, "config", "crd", "bases"), err
}

// module returns where a module is, after fetching it.
func module(ctx context.Context, tool, path, version string) (string, error) {
	out, err := goCommand(ctx, tool, "mod", "download", "-json", path+version)
	if err != nil {
		return "", err
	}

	var got struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Dir == "" {
		return "", fmt.Errorf("cannot find module %q in %q: %w", path, out, errors.Join(err, world.ErrOther))
	}

	return got.Dir, nil
}

// goCommand runs the go command in the module of a tool.
func goCommand(ctx context.Context, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join("..", "gitops", tool)
	cmd.Env = append(os.Environ(), "GOWORK=off")

	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run go %s: %w: %s", args[0], err, out)
	}

	return string(out), nil
}
