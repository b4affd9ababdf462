// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

// Decision is the answer to a Request.
type Decision struct {
	// Findings on every gated change, sorted by field.
	Findings []Finding
	// Action taken on unallowed changes; empty means none.
	Action v1alpha1.ValidationAction
	// Object is the new object as it should be stored: with our annotations,
	// with unallowed changes taken back where the action is Hold, and with the
	// set that a new managed resource's gate starts with. It shares
	// with the request's what is the same, and is not to be modified. On delete
	// it is the old object with what its deletion allows, to be stored before
	// it is deleted; nil where that is nothing.
	Object *unstructured.Unstructured
	// title names the object at the start of a refusal; empty where nothing is denied.
	title string
	// Enforcements that govern the object, by name, in order.
	Enforcements []string
	// Attestations are the values captured from the objects that led to the change,
	// and from the object itself, by field path: the initiator's first. Credentials
	// are masked.
	Attestations map[string]string
	// Held are the changes that were taken back in this or an earlier request
	// and are still asked for.
	Held []v1alpha1.HeldChange
	// Kept are other fields that were put back, for they hold an object and what it
	// is made of together.
	Kept []string
	// Forged are annotations a person tried to write that only Kausality
	// writes, by key.
	Forged []string
	// Overruled are annotations that only Kausality writes and of which the
	// writer's value is not what is stored, by key; and spec.managementPolicies,
	// where Crossplane's value is from before the gate was moved.
	Overruled []string
	// Conflict says why what would be stored is not what is decided, see [Verify]: the
	// request is to be made again. Empty otherwise.
	Conflict string
	// Warnings for the user who asks.
	Warnings []string
	// Problems are inputs that could not be used and count as absent:
	// annotations that do not parse, expressions that fail.
	Problems []error
	// Shadow are the changes that would be decided otherwise if what is in Shadow mode were
	// enforced. See [Decide]; [Verify] has none.
	Shadow []Shadowed
	// Costs are what the expressions of policies cost, each time that they were evaluated,
	// in that order; not of [Shadow].
	Costs []Cost
	// Refusal says why what is asked cannot be done at all, such as an
	// annotation over its limit. Nil otherwise.
	Refusal error

	// Withheld are the places at which changes are held now; nil for none.
	Withheld allowance.Withheld

	// governing are the Enforcements that govern the object, in order.
	governing []Source
}

// Cost is what the expressions of a policy cost.
type Cost struct {
	// Policy by name.
	Policy string
	// Units are CEL's, as Kubernetes counts them: the same for the same input, wherever and
	// whenever it is evaluated. A policy may spend [policy.CostLimit].
	Units uint64
}

// Allowed reports whether every change was asked for or is not governed.
func (d *Decision) Allowed() bool {
	for _, f := range d.Findings {
		if f.Verdict == Unallowed {
			return false
		}
	}

	return true
}

// answer is the decision, once all is stamped.
func answer(in *inputs, j *judged, s *stamped) Decision {
	out := Decision{
		Findings: j.findings, Action: j.action, Object: s.object, Held: j.held, Refusal: s.refusal,
		Withheld: j.next, Attestations: s.attestations, Kept: s.kept, Overruled: s.overruled,
		Warnings: slices.Concat(in.proposal.warnings, warnings(in.o, in.earlier, j)),
		Problems: in.problems.list, Costs: in.auth.ledger.costs,
	}

	for _, e := range in.enforced.governing {
		out.Enforcements = append(out.Enforcements, e.Name())
		out.governing = append(out.governing, sourceOfEnforcement(e))
	}

	slices.Sort(out.Enforcements)
	slices.SortFunc(out.governing, compareSources)

	if refuses(j) {
		out.title = in.o.title() + ": "
	}

	return out
}

// refuses reports whether an unallowed change is to be refused.
func refuses(j *judged) bool { return j.action == v1alpha1.ActionDeny && !j.allowed() }
