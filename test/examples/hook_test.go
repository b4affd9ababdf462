// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// hookAsks runs what Argo CD's hook runs, with the rights that the example gives
// it, where the sync is allowed and where it is not.
func hookAsks(t *testing.T) {
	t.Helper()

	raw, err := os.ReadFile(filepath.Join(dir, "other-systems", "presync.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	job := &batchv1.Job{}
	if err := yaml.UnmarshalStrict(raw, job); err != nil {
		t.Fatal(err)
	}

	pod := job.Spec.Template.Spec
	if job.Annotations["argocd.argoproj.io/hook"] != "PreSync" || *job.Spec.BackoffLimit != 0 || pod.RestartPolicy != "Never" {
		t.Errorf("it is no hook that fails at once: %+v", job)
	}

	args := append(slices.Clone(pod.Containers[0].Args), "--as=system:serviceaccount:"+job.Namespace+":"+pod.ServiceAccountName)

	ask := func(code int) {
		t.Helper()

		cmd := exec.CommandContext(t.Context(), filepath.Join(running.BinDir(), "kubectl-kausality"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(running.Dir(), "kubeconfig"))

		out, err := cmd.CombinedOutput()

		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}

		if cmd.ProcessState.ExitCode() != code || strings.Contains(string(out), "not known") {
			t.Errorf("the hook ends with %d, want %d:\n%s", cmd.ProcessState.ExitCode(), code, out)
		}
	}

	ask(0)

	edit := command{user: "anna", text: `kubectl patch application shop -n argocd --type=merge -p '{"spec": {"source": {"path": "other", "targetRevision": "v4"}}}'`}
	if out, err := edit.output(t.Context()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	ask(3)
}
