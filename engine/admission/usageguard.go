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

// A ProviderConfigUsage shows that a managed resource uses a ProviderConfig, which is kept because of it. A provider makes it before
// each call, and needs both to delete anything. Two delete it before its managed resource: the namespace controller, in a namespace
// where none can be made any more, and the garbage collector, where the managed resource is deleted in the foreground.

// usageGuard has the namespace controller leave them to the garbage collector.
func usageGuard(
	usages []kind.Served, gated []admissionregistrationv1.NamedRuleWithOperations,
) *admissionregistrationv1.ValidatingAdmissionPolicy {
	groups := make([]string, len(gated))
	for i, rule := range gated {
		groups[i] = rule.APIGroups[0]
	}

	return guard(v1alpha1.NameUsageGuard, namedRules(usageRules(usages, groups)), usagesOf(policy.NamespaceController, groups),
		[]admissionregistrationv1.Validation{{
			Expression: "false",
			Reason:     ptr.To(metav1.StatusReasonForbidden),
			Message:    "it goes with the managed resource that owns it, whose provider needs it until then",
		}})
}

// keepingUsages has the garbage collector wait until the provider is done with the managed resource.
func (h Options) keepingUsages(governed []GovernedKind, usages []kind.Served) []admissionregistrationv1.ValidatingWebhook {
	var groups []string

	for _, k := range governed {
		if k.Served.Managed {
			groups = append(groups, k.Served.GVK.Group)
		}
	}

	list := usageRules(usages, groups)
	if len(list) == 0 {
		return nil
	}

	return []admissionregistrationv1.ValidatingWebhook{{
		Name:                    "usages." + v1alpha1.Group,
		ClientConfig:            h.clientConfig(h.Server.UsagePath),
		Rules:                   list.list(),
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         usagesOf(policy.GarbageCollector, groups),
	}}
}

// usageRules are those of their deletion, where there are gated resources.
func usageRules(usages []kind.Served, groups []string) rules {
	list := rules{}

	if len(groups) > 0 {
		for _, k := range usages {
			list.add(k.GVK.Group, k.Resource, opDelete)
		}
	}

	return list
}

// usagesOf are the conditions of a user's deletion of one by a resource of some API groups.
func usagesOf(user string, groups []string) []admissionregistrationv1.MatchCondition {
	quoted := make([]string, len(groups))
	for i, group := range groups {
		quoted[i] = fmt.Sprintf("%q", group)
	}

	slices.Sort(quoted)

	return []admissionregistrationv1.MatchCondition{
		{Name: "by", Expression: fmt.Sprintf("request.userInfo.username == %q", user)},
		{Name: "owned", Expression: "has(oldObject.metadata.ownerReferences) && size(oldObject.metadata.ownerReferences) > 0"},
		{Name: "gated", Expression: fmt.Sprintf("oldObject.?resourceRef.?apiVersion.orValue('').split('/')[0] in [%s]",
			strings.Join(slices.Compact(quoted), ", "))},
	}
}
