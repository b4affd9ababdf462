// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
)

// Expressions about what decides about the external object beside the gate, of a
// managed resource that is governed.
const (
	noted = "object.metadata.?annotations[?%[1]q].orValue('') != oldObject.metadata.?annotations[?%[1]q].orValue('')"

	// Unset is the same as the default.
	sameDeletionPolicy = "object.spec.?deletionPolicy.orValue('Delete') == oldObject.spec.?deletionPolicy.orValue('Delete')"

	sameExternalName = "object.metadata.?annotations[?%[1]q].orValue('') == oldObject.metadata.?annotations[?%[1]q].orValue('')"

	orphans = "oldObject.spec.?deletionPolicy.orValue('') == 'Orphan'"
)

// unchangedUnlessAllowed has the API server keep what decides about the external object
// beside the gate. A provider may write it, and anybody whose change Kausality
// allowed, which its trace then says.
func (h Options) unchangedUnlessAllowed() []admissionregistrationv1.Validation {
	unless := fmt.Sprintf("request.operation != 'UPDATE' || (%s) || %s || (%s)", h.byProvider(),
		ungatedExpression(), fmt.Sprintf(noted, v1alpha1.AnnotationTrace))

	invalid := ptr.To(metav1.StatusReasonInvalid)

	return []admissionregistrationv1.Validation{{
		Expression: unless + " || " + sameDeletionPolicy,
		Reason:     invalid,
		Message: "the gate keeps spec.deletionPolicy, which decides what becomes of the external object: " +
			"to have it changed, ask for it where an AllowancePolicy allows it; " +
			"to release an orphaned managed resource, run: kubectl kausality release --orphan",
	}, {
		Expression: unless + " || " + fmt.Sprintf(sameExternalName, identity.AnnotationExternalName),
		Reason:     invalid,
		Message: "the gate keeps the annotation " + identity.AnnotationExternalName + ", which says what external object this is: " +
			"another one takes an AllowancePolicy that allows the change, and External Create and Delete",
	}}
}
