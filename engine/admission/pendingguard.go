// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// released is true of an update that says nothing else of a PendingChange, but for its
// finalizers and owners: the garbage collector writes these, and who deletes it.
const released = "request.operation == 'UPDATE' && !(" + ofStatus + ") && object.spec == oldObject.spec && " +
	"object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && " +
	"object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})"

// PendingGuard has only the manager write PendingChanges: whoever approves what one lists
// has seen what is held. To delete one is free; where something is held it is made again.
func (h Options) PendingGuard() Guard {
	r := rules{}
	r.add(v1alpha1.Group, "pendingchanges", opCreate, opUpdate)
	r.add(v1alpha1.Group, "pendingchanges"+subStatus, opUpdate)

	return bound(guard(v1alpha1.NamePendingGuard, namedRules(r),
		[]admissionregistrationv1.MatchCondition{{Name: "not-manager", Expression: fmt.Sprintf("request.userInfo.username != %q", h.Manager)}},
		[]admissionregistrationv1.Validation{{
			Expression: released, Reason: ptr.To(metav1.StatusReasonForbidden),
			Message: "only Kausality writes a PendingChange, which says what is held: " +
				"to decide about it, make a ChangeApproval; to have nothing held, take back what was asked for",
		}}), nil)
}
