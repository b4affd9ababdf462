// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespaces the stack has besides those every cluster has.
const (
	// CrossplaneNamespace is Crossplane's.
	CrossplaneNamespace = "crossplane-system"

	// KausalityNamespace is the manager's.
	KausalityNamespace = "kausality-system"
)

// A user is a person in the examples.
type user struct {
	name  string
	group string
}

// users by the names ConfigFor takes.
func users() map[string]user {
	return map[string]user{
		"hans": {name: "hans@example.com", group: "platform-team"},
		"anna": {name: "anna@example.com", group: "app-team"},
	}
}

// ConfigFor returns the configuration of a user's client: hans is hans@example.com of the group
// platform-team, anna is anna@example.com of the group app-team. Both may do everything RBAC can
// allow, but for escalating and impersonating: what they may cause is Kausality's to say.
func (s *Stack) ConfigFor(name string) (*rest.Config, error) {
	u, ok := users()[name]
	if !ok {
		return nil, fmt.Errorf("cannot configure user %q: there are %q", name, slices.Sorted(maps.Keys(users())))
	}
	pair, err := s.authority.client(u.name, u.group)
	if err != nil {
		return nil, err
	}
	return s.config(pair), nil
}

// createNamespaces creates the namespaces everything else needs.
func (s *Stack) createNamespaces(ctx context.Context) error {
	for _, name := range []string{CrossplaneNamespace, KausalityNamespace} {
		if err := s.applyTyped(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

// createUsers writes the users' kubeconfigs and gives them their rights.
func (s *Stack) createUsers(ctx context.Context) error {
	const role = "kausality-stack-user"
	var subjects []rbacv1.Subject
	for _, name := range slices.Sorted(maps.Keys(users())) {
		cfg, err := s.ConfigFor(name)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(s.path("users", name+".kubeconfig"), cfg); err != nil {
			return err
		}
		subjects = append(subjects, rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: users()[name].name,
		})
	}
	err := s.applyTyped(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{"*"},
				Resources: []string{"*"},
				Verbs:     []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
			},
			{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		},
	})
	if err != nil {
		return err
	}
	return s.bind(ctx, role, role, subjects...)
}

// bind binds subjects to a ClusterRole.
func (s *Stack) bind(ctx context.Context, name, role string, subjects ...rbacv1.Subject) error {
	return s.applyTyped(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	})
}

// bindClusterAdmin lets a service account of Crossplane's namespace do everything.
func (s *Stack) bindClusterAdmin(ctx context.Context, name string) error {
	return s.bind(ctx, "kausality-stack-"+name, "cluster-admin", rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: CrossplaneNamespace, Name: name,
	})
}

// createServiceAccount creates a service account, and returns a kubeconfig with a token of it that
// outlives the stack, also as a file.
func (s *Stack) createServiceAccount(ctx context.Context, namespace, name string) (path string, kubeconfig []byte, err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := s.applyTyped(ctx, account); err != nil {
		return "", nil, err
	}
	seconds := int64(certificateLife / time.Second)
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := s.client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", nil, fmt.Errorf("cannot get token of ServiceAccount %q: %w", client.ObjectKeyFromObject(account), err)
	}
	cfg := s.tokenConfig(token.Status.Token)
	if kubeconfig, err = encodeKubeconfig(cfg); err != nil {
		return "", nil, err
	}
	path = s.path("run", name, "kubeconfig")
	return path, kubeconfig, writeKubeconfig(path, cfg)
}
