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

// Expressions of the guard of AllowanceBindings. Whoever writes only metadata of one, such
// as a finalizer, gives nobody anything.
const (
	givesSomething = "request.operation != 'UPDATE' || object.spec != oldObject.spec"

	mayBind = "authorizer.group(%[1]q).resource('allowancepolicies').name(object.spec.policy).check(%[2]q).allowed()"

	howToBind = "'user \"' + request.userInfo.username + '\" may not bind AllowancePolicy \"' + object.spec.policy + '\": " +
		"who makes or changes an AllowanceBinding needs the verb %[2]s on it, such as by: " +
		"kubectl create clusterrole bind-' + object.spec.policy + ' --verb=%[2]s --resource=allowancepolicies.%[1]s " +
		"--resource-name=' + object.spec.policy"
)

// BindGuard refuses an AllowanceBinding to whom the cluster's authorizer does not grant
// the verb bind on its policy: as a RoleBinding to whom a role is not theirs to give.
func BindGuard() Guard {
	r := rules{}
	r.add(v1alpha1.Group, "allowancebindings", opCreate, opUpdate)

	return bound(guard(v1alpha1.NameBindGuard, namedRules(r),
		[]admissionregistrationv1.MatchCondition{{Name: "gives-something", Expression: givesSomething}},
		[]admissionregistrationv1.Validation{{
			Expression:        fmt.Sprintf(mayBind, v1alpha1.Group, v1alpha1.VerbBind),
			Reason:            ptr.To(metav1.StatusReasonForbidden),
			Message:           "the verb bind on the AllowancePolicy is missing",
			MessageExpression: fmt.Sprintf(howToBind, v1alpha1.Group, v1alpha1.VerbBind),
		}}), nil)
}
