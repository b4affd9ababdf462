// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package replicas_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAManagerIsReadyOnceItKnowsThePolicies starts one that may not read them at
// first.
func TestAManagerIsReadyOnceItKnowsThePolicies(t *testing.T) {
	const lesser = "lesser"

	// 1. Somebody who may do in our namespace what a manager may, and no more.
	k, err := kubernetes.NewForConfig(running.Config())
	if err != nil {
		t.Fatal(err)
	}

	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: lesser}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Name: "kausality-manager"}

	for _, ref.Kind = range []string{"Role", "ClusterRole"} {
		here := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: lesser}, Subjects: subjects, RoleRef: ref}
		if _, err := k.RbacV1().RoleBindings(stack.KausalityNamespace).Create(t.Context(), here, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	config, err := clientcmd.LoadFromFile(filepath.Join(running.Dir(), "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}

	for _, auth := range config.AuthInfos {
		auth.Impersonate = lesser
	}

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}

	m, err := running.LaunchManager(t.Context(), "kausality-manager-lesser", "--kubeconfig="+path)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = m.Stop() })

	// 2. It lives, and says what it is not ready for.
	world.Eventually(t, "a manager that lives and is not ready", both(
		answers(m, "/healthz", http.StatusOK, "ok"),
		answers(m, "/readyz?verbose", http.StatusInternalServerError, "[-]policies failed", "[+]certificate ok", "[+]webhook ok"),
	))

	if err := still(t.Context(), answers(m, "/readyz", http.StatusInternalServerError)); err != nil {
		t.Error(err)
	}

	// 3. It is ready without a restart.
	everywhere := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: lesser}, Subjects: subjects, RoleRef: ref}
	if _, err := k.RbacV1().ClusterRoleBindings().Create(t.Context(), everywhere, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	world.Eventually(t, "a manager that is ready", answers(m, "/readyz?verbose", http.StatusOK, "[+]policies ok"))
	world.Eventually(t, "a follower", leads(m, 0))
}

func both(checks ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, ok := range checks {
			if err := ok(ctx); err != nil {
				return err
			}
		}

		return nil
	}
}

// answers checks what a manager says of its health.
func answers(m *stack.Manager, path string, code int, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, body, err := get(ctx, m.HealthURL+path)
		if err != nil {
			return err
		}

		for _, word := range words {
			if !strings.Contains(body, word) {
				return fmt.Errorf("%s says %q, not %q: %w", path, body, word, world.ErrOther)
			}
		}

		if got != code {
			return fmt.Errorf("%s says %d, want %d: %w", path, got, code, world.ErrOther)
		}

		return nil
	}
}

// still checks for a while that something does not change.
func still(ctx context.Context, ok func(context.Context) error) error {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := ok(ctx); err != nil {
			return err
		}
	}

	return nil
}
