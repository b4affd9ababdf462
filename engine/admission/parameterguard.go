// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Expressions of the guard of the CRDs of parameters. A policy's group version is that of
// its paramKind.
const (
	endsAVersion = "request.operation == 'DELETE' || oldObject.spec.versions.exists(o, o.served && " +
		"!object.spec.versions.exists(v, v.name == o.name && v.served))"

	noParameters = "!has(params.spec.paramKind) || params.spec.paramKind.kind != oldObject.spec.names.kind || " +
		"!params.spec.paramKind.apiVersion.startsWith(oldObject.spec.group + '/') || (request.operation == 'UPDATE' && " +
		"object.spec.versions.exists(v, v.served && object.spec.group + '/' + v.name == params.spec.paramKind.apiVersion))"

	whoNeedsIt = "'AllowancePolicy \"' + params.metadata.name + '\" has its parameters in objects of kind ' + " +
		"oldObject.spec.names.kind + ' of ' + params.spec.paramKind.apiVersion + " +
		"': Crossplane would wait for these wherever the policy is asked for. " +
		"Change the spec.paramKind of the policy, or delete it, first; then wait ten seconds'"
)

// ParameterGuard refuses to take away a kind that policies have parameters of: Crossplane
// remembers what a function required of it last, and until it is restarted waits two
// minutes for that in each reconciliation of the XR, in vain. The policies are the guard's
// parameters. What it cannot tell it lets pass: it is about all CRDs of a cluster.
func ParameterGuard() Guard {
	r := rules{}
	r.add("apiextensions.k8s.io", "customresourcedefinitions", opUpdate, opDelete)

	out := guard(v1alpha1.NameParameterGuard, namedRules(r),
		[]admissionregistrationv1.MatchCondition{{Name: "ends-a-version", Expression: endsAVersion}},
		[]admissionregistrationv1.Validation{{
			Expression: noParameters, Reason: ptr.To(metav1.StatusReasonForbidden),
			Message: "an AllowancePolicy has its parameters in objects of this kind", MessageExpression: whoNeedsIt,
		}})
	out.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	out.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion().String(), Kind: "AllowancePolicy"}

	return bound(out, &admissionregistrationv1.ParamRef{
		Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
	})
}
