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

// Expressions of the guard of what providers need, by the API groups that have gated kinds.
const (
	// ofGated is true of what shows that a gated resource uses a provider's configuration.
	ofGated = "oldObject.?resourceRef.?apiVersion.orValue('').split('/')[0] in [%[1]s]"

	// usedByGated is true of a configuration that is used, of a family of providers with gated kinds.
	usedByGated = "oldObject.?status.?users.orValue(0) > 0 && " +
		"[%[1]s].exists(g, g == oldObject.apiVersion.split('/')[0] || g.endsWith('.' + oldObject.apiVersion.split('/')[0]))"

	isOwned = "has(oldObject.metadata.ownerReferences) && size(oldObject.metadata.ownerReferences) > 0"
)

// usageGuard keeps what the provider of a gated resource needs to delete anything. Who deletes for others, the namespace controller,
// the garbage collector and Crossplane, deletes in any order: a configuration waits until nothing uses it any more, and what shows
// that one is used, which cannot be made in a namespace that is deleted, is left to the garbage collector.
func (h Options) usageGuard(
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

	among := strings.Join(slices.Compact(groups), ", ")
	needed := fmt.Sprintf("(request.userInfo.username == %[2]q && "+isOwned+" && "+ofGated+") || ("+usedByGated+")",
		among, policy.NamespaceController)

	return guard(v1alpha1.NameUsageGuard, namedRules(list),
		[]admissionregistrationv1.MatchCondition{
			{Name: "for-others", Expression: fmt.Sprintf("request.userInfo.username in [%s]",
				texts(policy.NamespaceController, policy.GarbageCollector, h.Crossplane))},
			{Name: "needed", Expression: needed},
		},
		[]admissionregistrationv1.Validation{{
			Expression: "false",
			Reason:     ptr.To(metav1.StatusReasonForbidden),
			Message:    "the provider of gated managed resources needs it until these are gone",
		}})
}
