// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// sameCondition is true where a write of a status leaves a condition as it is, wherever in
// the list it is. Neither the status nor the list, nor the type of a condition, need be there.
const sameCondition = "object.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == %[1]q) == " +
	"oldObject.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == %[1]q)"

// HeldGuard has only the manager and Crossplane, for the composition function, say of the
// Claims and XRs among some kinds what is held: who may write a status, such as who may edit
// an XR, could otherwise show an approver another change than the one that is let through.
func (h Options) HeldGuard(kinds []kind.Served) Guard {
	r := rules{}

	for _, k := range kinds {
		if k.Crossplane {
			r.add(k.GVK.Group, k.Resource+subStatus, opUpdate)
		}
	}

	types := []string{v1alpha1.ConditionKausality, v1alpha1.ConditionState}

	same := make([]string, len(types))
	for i, t := range types {
		same[i] = fmt.Sprintf(sameCondition, t)
	}

	return bound(guard(v1alpha1.NameHeldGuard, namedRules(r),
		[]admissionregistrationv1.MatchCondition{h.notBy("not-ours", h.Manager, h.Crossplane)},
		[]admissionregistrationv1.Validation{{
			Expression: strings.Join(same, " && "), Reason: ptr.To(metav1.StatusReasonForbidden),
			Message: "only Kausality and Crossplane write the conditions " + strings.Join(types, " and ") + ", which say what is held",
		}}), nil)
}
