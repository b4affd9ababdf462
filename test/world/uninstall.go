// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// Uninstall runs the command that removes Kausality from a stack, as its
// administrator, and returns what it prints.
func Uninstall(ctx context.Context, s *stack.Stack, args ...string) (string, error) {
	args = append([]string{"uninstall", "--kubeconfig", filepath.Join(s.Dir(), "kubeconfig")}, args...)
	out, err := exec.CommandContext(ctx, filepath.Join(s.BinDir(), "kubectl-kausality"), args...).CombinedOutput()

	return string(out), err
}

// CheckUnguarded checks that nothing is left of what has the API server ask us or
// guard what is ours.
func CheckUnguarded(t *testing.T, c client.Client) {
	t.Helper()

	for _, kind := range []string{
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind(kind + "List")

		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}

		for _, u := range list.Items {
			if strings.HasPrefix(u.GetName(), "kausality") {
				t.Errorf("%s %q is still there", kind, u.GetName())
			}
		}
	}
}
