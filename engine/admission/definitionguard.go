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

// DefinitionGuards builds the guards of our CRDs: who deletes one deletes all
// objects of the kind without being asked about any, and with them what is
// governed. Bindings is true where there are AllowanceBindings.
func DefinitionGuards(bindings bool) []Guard {
	list := v1alpha1.Definitions()
	out := make([]Guard, 0, len(list))

	for _, d := range list {
		if !d.Unguarded {
			out = append(out, bound(definitionGuard(d, bindings)))
		}
	}

	return out
}

// definitionGuard refuses to delete the CRD of one of our kinds while there are
// objects of it. These are the guard's parameters: the API server asks once for
// each, and not at all where there is none. What is in namespaces cannot be the
// parameters of a guard of what is in none: such a guard is there while there are any.
func definitionGuard(d v1alpha1.Definition, inNamespaces bool) (
	*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ParamRef,
) {
	r := rules{}
	if !d.Namespaced || inNamespaces {
		r.add("apiextensions.k8s.io", "customresourcedefinitions", opDelete)
	}

	lost, everywhere := "nothing is governed any more", ""
	if d.Namespaced {
		lost, everywhere = "those whom they name may initiate nothing", " -A"
	}

	out := guard(v1alpha1.PrefixDefinitionGuard+d.Plural, namedRules(r),
		// Many are deleted at once without a name in the request.
		[]admissionregistrationv1.MatchCondition{{Name: "of-this-kind", Expression: fmt.Sprintf("oldObject.metadata.name == %q", d.Name())}},
		[]admissionregistrationv1.Validation{{
			Expression: "false",
			Reason:     ptr.To(metav1.StatusReasonForbidden),
			Message: "there are objects of kind " + d.Kind + ", and without them " + lost + ": to remove Kausality, run: " +
				"kubectl kausality uninstall; to go on without them, delete them first: kubectl delete " + d.Name() + " --all" + everywhere,
		}})
	if d.Namespaced {
		return out, nil
	}

	out.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion().String(), Kind: d.Kind}

	return out, &admissionregistrationv1.ParamRef{
		Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
	}
}
