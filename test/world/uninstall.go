// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// Uninstall runs the command that removes Kausality from a stack, as its
// administrator, and returns what it prints.
func Uninstall(ctx context.Context, s *stack.Stack, args ...string) (string, error) {
	out, err := play.Shell{Stack: s}.Command(ctx, play.Admin, "kubectl-kausality", append([]string{"uninstall"}, args...)...).CombinedOutput()

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
