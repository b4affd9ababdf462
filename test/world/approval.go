// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/stack"
)

// ConnectTyped is Connect for who reads and writes Kausality's own kinds, and roles, as
// Go types.
func ConnectTyped(t *testing.T, config *rest.Config) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// Approver is somebody who decides about what is held.
type Approver struct {
	client.Client

	// Name of the user.
	Name string
}

// NewApprover makes somebody who may make ChangeApprovals in a namespace, and has rights to
// decide there, each as VERB GROUP RESOURCE, until the test ends.
func NewApprover(t *testing.T, s *stack.Stack, namespace, name string, rights ...[3]string) Approver {
	t.Helper()

	rules := make([]rbacv1.PolicyRule, 0, 1+len(rights))
	rules = append(rules, rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.Group}, Resources: []string{"changeapprovals"}, Verbs: []string{"create", "delete", "get", "list"},
	})

	for _, r := range rights {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: []string{r[0]}, APIGroups: []string{r[1]}, Resources: []string{r[2] + "/" + v1alpha1.SubresourceKausality},
		})
	}

	all := ConnectTyped(t, s.Config())
	role := metav1.ObjectMeta{Name: "approver-" + name, Namespace: namespace}

	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: role, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: role, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		},
	} {
		if err := all.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = all.Delete(context.WithoutCancel(t.Context()), obj) })
	}

	config := s.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}

	return Approver{Client: ConnectTyped(t, config), Name: name}
}

// Decide makes a ChangeApproval of some of the changes that a PendingChange lists.
func (a Approver) Decide(
	ctx context.Context, pch *v1alpha1.PendingChange, name string, decision v1alpha1.ApprovalDecision, which func(v1alpha1.HeldChange) bool,
) error {
	cha := &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: pch.Namespace, Name: name},
		Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: pch.Name, Digest: pch.Status.Digest, Decision: decision, Reason: "CHG-" + name},
	}

	for _, e := range pch.Status.Changes {
		if which(e) {
			cha.Spec.Changes = append(cha.Spec.Changes, e.Digest)
		}
	}

	return a.Create(ctx, cha)
}
