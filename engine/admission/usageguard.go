// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// usageGuard has the namespace controller leave to the garbage collector what
// shows that a gated resource uses a provider's configuration. A provider has to
// make it before it can delete anything, and in a namespace that is deleted nothing can
// be made: what has to wait for its gate could then never be deleted.
func usageGuard(
	usages []kind.Served, gated []admissionregistrationv1.NamedRuleWithOperations,
) *admissionregistrationv1.ValidatingAdmissionPolicy {
	list := rules{}

	if len(gated) > 0 {
		for _, k := range usages {
			list.add(k.GVK.Group, k.Resource, opDelete)
		}
	}

	groups := make([]string, len(gated))
	for i, rule := range gated {
		groups[i] = fmt.Sprintf("%q", rule.APIGroups[0])
	}

	slices.Sort(groups)

	return guard(v1alpha1.NameUsageGuard, namedRules(list),
		[]admissionregistrationv1.MatchCondition{
			{Name: "namespace-controller", Expression: fmt.Sprintf("request.userInfo.username == %q", policy.NamespaceController)},
			{Name: "owned", Expression: "has(oldObject.metadata.ownerReferences) && size(oldObject.metadata.ownerReferences) > 0"},
			{Name: "gated", Expression: fmt.Sprintf("oldObject.?resourceRef.?apiVersion.orValue('').split('/')[0] in [%s]",
				strings.Join(groups, ", "))},
		},
		[]admissionregistrationv1.Validation{{
			Expression: "false",
			Reason:     ptr.To(metav1.StatusReasonForbidden),
			Message:    "it goes with the managed resource that owns it, whose provider needs it until then",
		}})
}
