// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/test/play"
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

		r, err := shell().Run(t.Context(), play.Admin, "kubectl-kausality", args...)
		if err != nil {
			t.Fatal(err)
		}

		if out := r.Stdout + r.Stderr; r.Code != code || strings.Contains(out, "not known") {
			t.Errorf("the hook ends with %d, want %d:\n%s", r.Code, code, out)
		}
	}

	ask(0)

	edit := play.Command{User: "anna", Text: `kubectl patch application shop -n argocd --type=merge -p '{"spec": {"source": {"path": "other", "targetRevision": "v4"}}}'`}
	if out, err := shell().Type(t.Context(), edit); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	ask(3)
}
