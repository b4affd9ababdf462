// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// reportUngated says on a policy which of the kinds it names are not gated, and
// nothing where all are.
func (s *statuses) reportUngated(p *v1alpha1.AllowancePolicy, kinds []servedKind) {
	names := policyKinds(p.Spec)
	said := ""

	if was := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionGated); was != nil {
		said = was.Message
	}

	var found []string

	for _, k := range kinds {
		name := kindName{group: k.gvk.Group, kind: k.gvk.Kind}.String()
		unsupported := "the provider of " + name + " does not support management policies"

		switch {
		case !slices.ContainsFunc(names, func(n kindName) bool { return n.matches(k.gvk) }):
		case k.ungateable:
			found = append(found, name+" has no spec.managementPolicies")
		case s.ungated.count(k.gvk.GroupKind()) > 0,
			strings.Contains(said, unsupported) && s.ungated.untold(k.gvk.GroupKind()):
			found = append(found, unsupported)
		}
	}

	if len(found) == 0 {
		meta.RemoveStatusCondition(&p.Status.Conditions, v1alpha1.ConditionGated)

		return
	}

	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionGated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnsupported,
		ObservedGeneration: p.GetGeneration(), Message: "what the provider does is not gated: " + strings.Join(found, "; "),
	})
}
