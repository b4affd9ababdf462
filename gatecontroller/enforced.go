// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gatecontroller

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// enforced is an Enforcement with the kinds it covers.
type enforced struct {
	*enforcement.Enforcement

	kinds []servedKind
}

// covered finds the kinds that Enforcements cover; those that do not compile are
// left out where their failure policy is Ignore.
func covered(list []v1alpha1.Enforcement, served []servedKind) []enforced {
	compiled, _ := enforcement.NewCache().List(list) // What does not compile is said in its status.
	out := make([]enforced, 0, len(compiled))

	for _, e := range compiled {
		one := enforced{Enforcement: e}

		for _, k := range served {
			if e.Covers(k.groupResource()) {
				one.kinds = append(one.kinds, k)
			}
		}

		out = append(out, one)
	}

	return out
}

// conditions are those of the Enforcement that the API server may check by
// itself. One that it cannot evaluate it takes for a refusal, where the failure
// policy is Fail; we take it for met. So those it must leave to us.
func (e enforced) conditions() []admissionregistrationv1.MatchCondition {
	if e.Spec().FailurePolicy != v1alpha1.FailurePolicyIgnore {
		return nil
	}

	var out []admissionregistrationv1.MatchCondition

	for i, c := range e.Spec().MatchConditions {
		// Of an update it is about either object: a write does not free itself.
		either := "[object, oldObject].exists(object, object != null && (" + c.Expression + "))"

		if len(out) < mostConditions && policy.Plain(c.Expression) && policy.Plain(either) {
			out = append(out, admissionregistrationv1.MatchCondition{
				// There the API server has no new object; we take the old one for it.
				Name: fmt.Sprintf("condition-%d", i), Expression: "request.operation == 'DELETE' || " + either,
			})
		}
	}

	return out
}

// mostConditions is how many conditions of its own a webhook may have: 64, with
// those about who is exempt.
//
// Source: k8s.io/kubernetes pkg/apis/admissionregistration/validation.
const mostConditions = 60

// webhookName is the name of the Enforcement's webhook of a kind, a domain name.
func (e enforced) webhookName(kind string) string {
	name := e.Name()
	if len(name) > mostName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}

	return name + "." + kind + "enforcement." + v1alpha1.Group // No Enforcement's name ends so.
}

// mostName is how long a name may be beside what comes before and after it in
// one of 253 characters.
const mostName = 200
