// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package right

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// all is every group, or every resource.
const all = rbacv1.ResourceAll

// LabelOfCrossplane has a ClusterRole be part of Crossplane's own.
//
// Source: crossplane cluster/charts/crossplane/templates/clusterrole.yaml.
const LabelOfCrossplane = "rbac.crossplane.io/aggregate-to-crossplane"

// prefix is that of the names of the roles that are printed. Those of the chart
// have another one: Helm takes over nothing that it did not make.
const prefix = "kausality-governed:"

// Roles are ClusterRoles that give what is missing, to be aggregated to the
// manager's. A group that has Claims, XRs or managed resources gets one role for all
// that is in it, so that the next kind of the same provider or platform needs no
// other; in other groups, which may have credentials and ways into pods, each
// resource gets one of its own. None of them takes anything away that another one
// gave before.
func Roles(list []MissingRights, served []Kind) []rbacv1.ClusterRole {
	var out []rbacv1.ClusterRole

	whole := map[string]bool{}

	for _, l := range list {
		shared := slices.ContainsFunc(served, func(k Kind) bool { return k.Group == l.Need.Group && k.Crossplane })

		switch {
		case shared && whole[l.Need.Group]:
		case shared:
			whole[l.Need.Group] = true
			out = append(out, role(l.Need.Group, l.Need.Group, []string{all}, Need{}.verbs()))
		default:
			// All that it takes, also what is there already: the role may be the one that
			// gave it.
			out = append(out, l.role())
		}
	}

	return out
}

// role gives all that a need takes.
func (l MissingRights) role() rbacv1.ClusterRole {
	resources := []string{l.Need.Resource}
	if l.Need.Status {
		resources = append(resources, l.Need.Resource+"/status")
	}

	name := l.Need.String()
	if len(l.Need.Only) > 0 {
		name += ":" + strings.Join(l.Need.Only, "-")
	}

	return role(name, l.Need.Group, resources, l.Need.verbs())
}

// RoleOfParameters is a ClusterRole that lets the manager and Crossplane read objects that
// hold parameters of policies: it is aggregated to the roles of both.
func RoleOfParameters(gr schema.GroupResource) rbacv1.ClusterRole {
	out := role("params:"+gr.String(), gr.Group, []string{gr.Resource}, Read(gr).verbs())
	out.Labels[LabelOfCrossplane] = "true"

	return out
}

func role(name, group string, resources, verbs []string) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: prefix + name, Labels: map[string]string{v1alpha1.LabelAggregate: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: verbs}},
	}
}
