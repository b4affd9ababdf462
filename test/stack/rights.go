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
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// governedRole is what all roles about governed kinds are aggregated to, in package/rbac.
const governedRole = "kausality-manager-governed"

// Suite is what the tests of this repository govern, as the chart's value rbac.governed has it: groups
// of their own, those of the providers, and what they name of Kubernetes' own.
func Suite() []string {
	return []string{
		"*.example.org", "*.shop.example.org", "*.lab.example.org", "*.sql.example.org", "*.old.example.org", "*.machines.example.org",
		"*.templates.example.org", "*.toys.example.org", "*.notes.example.org", "*.infra.example.org", "*.stack.example.org",
		"*.fidelity.example.org", "*.quiet.example.org", "*.bench.example.org", "applications.argoproj.io",
		"*.tenants.example.org", "*.sql.postgresql.example.org", "*.sql.postgresql.m.example.org",
		"*.kubernetes.crossplane.io", "*.kubernetes.m.crossplane.io", "*.nop.crossplane.io",
		"deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
		"pods", "services", "endpoints", "configmaps", "secrets", "persistentvolumeclaims", "persistentvolumes",
	}
}

// govern gives the manager the rights on what is to be governed.
func (s *Stack) govern(ctx context.Context) error {
	governed := s.options.Governed
	if governed == nil {
		governed = []string{"*.*"} // As the chart's value rbac.wide.
	}
	for _, entry := range governed {
		resource, group, _ := strings.Cut(entry, ".")
		resources := []string{resource}
		if resource != "*" {
			resources = append(resources, resource+"/status")
		}
		err := s.applyTyped(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: kausalityManager + ":" + entry, Labels: map[string]string{v1alpha1.LabelAggregate: "true"}},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "patch", "watch"},
			}},
		})
		if err != nil {
			return err
		}
	}
	if s.options.has(ControllerManager) {
		return nil
	}
	return s.Aggregate(ctx)
}

// Aggregate does to the role about governed kinds what kube-controller-manager does, where there is none.
func (s *Stack) Aggregate(ctx context.Context) error {
	list := &rbacv1.ClusterRoleList{}
	if err := s.client.List(ctx, list, client.MatchingLabels{v1alpha1.LabelAggregate: "true"}); err != nil {
		return fmt.Errorf("cannot list roles: %w", err)
	}
	role := &rbacv1.ClusterRole{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: governedRole}, role); err != nil {
		return fmt.Errorf("cannot get ClusterRole %q: %w", governedRole, err)
	}
	role.Rules = nil
	for i := range list.Items {
		role.Rules = append(role.Rules, list.Items[i].Rules...)
	}
	if err := s.client.Update(ctx, role); err != nil {
		return fmt.Errorf("cannot update ClusterRole %q: %w", governedRole, err)
	}
	return nil
}
