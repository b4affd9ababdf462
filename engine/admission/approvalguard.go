// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// changeApprovals is the resource of ChangeApprovals, subStatus the subresource of a status.
const (
	changeApprovals = "changeapprovals"
	subStatus       = "/status"
)

// Expressions of the guard of ChangeApprovals. The API server leaves out of a request what
// its user has none of.
const (
	ofStatus = "request.?subResource.orValue('') == 'status'"

	signed = "request.operation != 'CREATE' || object.spec.?approver.hasValue()"

	signedTruly = "request.operation != 'CREATE' || !object.spec.?approver.hasValue() || (" +
		"object.spec.approver.username == request.userInfo.username && " +
		"object.spec.approver.?uid.orValue('') == request.userInfo.?uid.orValue('') && " +
		"object.spec.approver.?groups.orValue([]) == request.userInfo.?groups.orValue([]) && " +
		"object.spec.approver.?extra.orValue({}) == request.userInfo.?extra.orValue({}))"

	// ended are those of which nothing comes any more.
	ended = "oldObject.?status.?changes.orValue([]).size() > 0 && " +
		"oldObject.status.changes.all(c, c.state in ['Applied', 'Superseded', 'Expired'])"

	own = "oldObject.spec.?approver.?username.orValue(request.userInfo.username) == request.userInfo.username"

	mayWithdraw = "authorizer.group('" + v1alpha1.Group + "').resource('" + changeApprovals + "')" +
		".namespace(oldObject.metadata.namespace).name(oldObject.metadata.name).check('" + v1alpha1.VerbWithdraw + "').allowed()"

	notTheirs = "'user \"' + request.userInfo.username + '\" may not delete ChangeApproval \"' + oldObject.metadata.name + '\", which \"' + " +
		"oldObject.spec.approver.username + '\" has made, before it ends: have them do it, or who has the verb " + v1alpha1.VerbWithdraw +
		", such as by: kubectl create role withdraw --verb=" + v1alpha1.VerbWithdraw + " --resource=" + changeApprovals + "." + v1alpha1.Group +
		" -n ' + oldObject.metadata.namespace"

	sameSpec = "request.operation != 'UPDATE' || object.spec == oldObject.spec"
)

// ApprovalGuard refuses a ChangeApproval that does not say who made it, or says that it was
// somebody else, and has only the manager say what became of it. The webhook writes who made
// it; whatever becomes of the webhook, nobody writes another one. Who writes only metadata,
// such as a finalizer, is let pass. One that has not ended is deleted by who made it, for else
// who may not decide could withdraw what others have decided, such as a rejection.
func (h Options) ApprovalGuard() Guard {
	r := rules{}
	r.add(v1alpha1.Group, changeApprovals, opCreate, opUpdate, opDelete)
	r.add(v1alpha1.Group, changeApprovals+subStatus, opUpdate)

	forbidden := ptr.To(metav1.StatusReasonForbidden)

	return bound(guard(v1alpha1.NameApprovalGuard, namedRules(r), nil,
		[]admissionregistrationv1.Validation{{
			Expression: signed, Reason: forbidden,
			Message: "spec.approver is missing, which Kausality's webhook fills in: it was not asked; " +
				"try again once the Deployment kausality-manager is ready",
		}, {
			Expression: signedTruly, Reason: forbidden,
			Message: "spec.approver has to be who makes the ChangeApproval, with their uid, groups and extra: leave it out, " +
				"for Kausality's webhook fills it in; where it was not asked, try again once the Deployment kausality-manager is ready",
		}, {
			Expression: sameSpec, Reason: forbidden,
			Message: "the spec of a ChangeApproval cannot be changed: make another one, or delete this one to withdraw it",
		}, {
			Expression: fmt.Sprintf("!(%s) || request.userInfo.username == %q", ofStatus, h.Manager), Reason: forbidden,
			Message: "only Kausality says what became of a ChangeApproval",
		}, {
			Expression: fmt.Sprintf("request.operation != 'DELETE' || request.userInfo.username in [%q, %q, %q] || (%s) || (%s) || %s",
				h.Manager, policy.NamespaceController, policy.GarbageCollector, ended, own, mayWithdraw),
			Reason: forbidden, Message: "only who made a ChangeApproval deletes it before it ends", MessageExpression: notTheirs,
		}}), nil)
}
