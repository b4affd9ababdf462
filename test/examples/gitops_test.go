// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Who the tools are.
const (
	argoCD = "system:serviceaccount:argocd:argocd-application-controller"
	flux   = "system:serviceaccount:flux-system:kustomize-controller"
)

// gitops is a program of test/gitops, made of a tool's own libraries.
type gitops struct {
	name, user string
	// config is the tool's own manifest.
	config string
}

// run runs it on a file, of the example unless its path is absolute, and returns what it prints; what differs
// goes into the test's log.
func (g gitops) run(t *testing.T, verb, file string) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "--as="+g.user, verb, path(t, g.config), path(t, file))
	cmd.Dir = filepath.Join("..", "gitops", g.name)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(running.Dir(), "kubeconfig"), "GOWORK=off")

	var problem strings.Builder

	cmd.Stderr = &problem

	out, err := cmd.Output()
	t.Logf("%s %s %s:\n%s%s", g.name, verb, file, out, problem.String())

	if err != nil {
		t.Fatalf("%s %s: %v", g.name, verb, err)
	}

	return string(out)
}

// path is absolute, also of one of the example's files.
func path(t *testing.T, file string) string {
	t.Helper()

	if filepath.IsAbs(file) {
		return file
	}

	out, err := filepath.Abs(filepath.Join(dir, "gitops", file))
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// finds has it compare until it says the same of everything.
func (g gitops) finds(t *testing.T, file, want string) {
	t.Helper()

	out := g.run(t, "diff", file)
	if strings.Count(out, "\n") == 0 || strings.Count(out, want+"\n") != strings.Count(out, "\n") {
		t.Errorf("%s says\n%swant %s", g.name, out, want)
	}
}

// toolsAgree has the tools' own code apply what the example has in Git, and compare.
// It goes on where the README ends.
func toolsAgree(t *testing.T) {
	t.Helper()

	inFlux := gitops{name: "flux", user: flux, config: "kustomization.yaml"}
	inArgoCD := gitops{name: "argocd", user: argoCD, config: "application.yaml"}

	// The edit by hand is a difference, so they do look.
	inFlux.finds(t, "topic-14d.yaml", "configured")
	inFlux.run(t, "apply", "topic-14d.yaml")
	arrives(t, "14d", "c4d5e6f")
	inFlux.finds(t, "topic-14d.yaml", "unchanged")

	inFlux.run(t, "apply", "topic-7d.yaml")
	arrives(t, "7d", "c4d5e6f") // The commit is what the Kustomization says.
	inFlux.finds(t, "topic-7d.yaml", "unchanged")

	inArgoCD.finds(t, "topic-14d.yaml", "OutOfSync")
	inArgoCD.run(t, "sync", "topic.yaml")
	arrives(t, "1d", "1f0c2aa")
	inArgoCD.finds(t, "topic.yaml", "Synced")

	// Nor does Argo CD need settings, unless what is in Git has been taken from a
	// cluster, with annotations of ours.
	bare := inArgoCD
	bare.config = edited(t, inArgoCD.config, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "ignoreDifferences")
	})
	bare.finds(t, "topic.yaml", "Synced")

	taken := edited(t, "topic.yaml", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		annotations["kausality.io/trace"] = "[]"
		u.SetAnnotations(annotations)
	})

	if out := bare.run(t, "diff", taken); !strings.Contains(out, "compared as it applies: OutOfSync\n") {
		t.Errorf("without settings it says\n%s", out)
	}

	inArgoCD.finds(t, taken, "Synced")
}

// edited returns the path of an edited copy of one of the example's files.
func edited(t *testing.T, file string, edit func(*unstructured.Unstructured)) string {
	t.Helper()

	u := decodeFile(t, path(t, file))[0]
	edit(u)

	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	out := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(out, raw, 0o600); err != nil {
		t.Fatal(err)
	}

	return out
}

// arrives waits until a change is outside, settled and traced to its commit.
func arrives(t *testing.T, retention, commit string) {
	t.Helper()

	c := somebody(t)

	err := scenario.Eventually(t.Context(), "retention "+retention, func(ctx context.Context) error {
		topic, object, external := &unstructured.Unstructured{}, &unstructured.Unstructured{}, &unstructured.Unstructured{}

		for u, gvk := range map[*unstructured.Unstructured]schema.GroupVersionKind{
			topic:    {Group: "example.org", Version: "v1", Kind: "Topic"},
			object:   {Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "Object"},
			external: {Version: "v1", Kind: "ConfigMap"},
		} {
			u.SetGroupVersionKind(gvk)

			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "orders"}, u); err != nil {
				return err
			}
		}

		condition, _ := resource.ConditionOf(topic, "Kausality")
		got := []string{
			resource.String(external.Object, "data", "retention"), condition.Message,
			topic.GetAnnotations()["kausality.io/allowances"], object.GetAnnotations()["kausality.io/trace"],
		}

		if got[0] != retention || got[1] != fixture.SettledMessage(topic.GetGeneration()) || got[2] != "[]\n" && got[2] != "[]" ||
			!strings.Contains(got[3], "metadata.annotations[commit]: "+commit) {
			return fmt.Errorf("it is %q: %w", got, world.ErrOther)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
