// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/expression"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
)

// Enforced is an Enforcement with the kinds it covers.
type Enforced struct {
	Enforcement *enforcement.Enforcement

	Kinds []kind.Served
}

// Covered finds the kinds that Enforcements cover; those that do not compile are
// left out where their failure policy is Ignore.
func Covered(list []v1alpha1.Enforcement, served []kind.Served) []Enforced {
	compiled, _ := enforcement.NewCache().List(list) // What does not compile is said in its status.
	out := make([]Enforced, 0, len(compiled))

	for _, e := range compiled {
		one := Enforced{Enforcement: e}

		for _, k := range served {
			if len(e.Operations(k.GroupResource())) > 0 {
				one.Kinds = append(one.Kinds, k)
			}
		}

		out = append(out, one)
	}

	return out
}

// conditions are those of the Enforcement that the API server may check by
// itself. One that it cannot evaluate it takes for a refusal, where the failure
// policy is Fail; we take it for met. So those it must leave to us.
func (e Enforced) conditions() []admissionregistrationv1.MatchCondition {
	if e.Enforcement.Spec().FailurePolicy != v1alpha1.FailurePolicyIgnore {
		return nil
	}

	var out []admissionregistrationv1.MatchCondition

	for i, c := range e.Enforcement.Spec().MatchConditions {
		// Of an update it is about either object: a write does not free itself.
		either := "[object, oldObject].exists(object, object != null && (" + c.Expression + "))"

		if len(out) < maxConditions && expression.Plain(c.Expression) && expression.Plain(either) {
			out = append(out, admissionregistrationv1.MatchCondition{
				// There the API server has no new object; we take the old one for it.
				Name: fmt.Sprintf("condition-%d", i), Expression: "request.operation == 'DELETE' || " + either,
			})
		}
	}

	return out
}

// maxConditions is how many conditions a webhook itself may have: 64, with
// those about who is exempt.
//
// Source: k8s.io/kubernetes pkg/apis/admissionregistration/validation.
const maxConditions = 60

// webhookName is the name of the Enforcement's webhook of a kind, a domain name.
func (e Enforced) webhookName(prefix string) string {
	name := e.Enforcement.Name()
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}

	return name + "." + prefix + "enforcement." + v1alpha1.Group // No Enforcement's name ends so.
}

// maxName is how long a name may be beside what comes before and after it in
// one of 253 characters.
const maxName = 200
