// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// reportUngated says on a policy which of the kinds it names are not gated, and
// nothing where all are.
func (s *Reporter) reportUngated(p *v1alpha1.AllowancePolicy, kinds []kind.Served) {
	names := kind.OfPolicy(p.Spec)
	said := ""

	if was := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionGated); was != nil {
		said = was.Message
	}

	var found []string

	for _, k := range kinds {
		name := kind.Name{Group: k.GVK.Group, Kind: k.GVK.Kind}.String()
		unsupported := "the provider of " + name + " does not support management policies"

		switch {
		case !slices.ContainsFunc(names, func(n kind.Name) bool { return n.Matches(k.GVK) }):
		case k.Ungateable:
			found = append(found, name+" has no spec.managementPolicies")
		case s.Ungated.Count(k.GVK.GroupKind()) > 0,
			strings.Contains(said, unsupported) && s.Ungated.Unreported(k.GVK.GroupKind()):
			found = append(found, unsupported)
		}
	}

	if len(found) == 0 {
		meta.RemoveStatusCondition(&p.Status.Conditions, v1alpha1.ConditionGated)

		return
	}

	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionGated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnsupported,
		ObservedGeneration: p.GetGeneration(), Message: ungatedText + message.Join(found, message.Most-len(ungatedText)),
	})
}

const ungatedText = "the provider's actions are not gated: "
