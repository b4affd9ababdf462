// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// Request is about one composed resource of one XR.
type Request struct {
	// Basis that it is decided by. Of Enforcements the exceptions count; what they do
	// about unallowed changes does not, for that is the Mode's.
	Basis request.Basis

	// XR that composes, as observed.
	XR *unstructured.Unstructured
	// Name of the composed resource in its Composition.
	Name string
	// Other is the other resource of the Composition that is the same object; nil
	// as a rule.
	Other *Other
	// Successor is the name of another one that is to stand for the external object of this one, which is to go, see
	// [Successors]; empty as a rule.
	Successor string
	// Ungated is true where the resource's kind is known to have no
	// spec.managementPolicies.
	Ungated bool
	// GatedIn is the version of the kind that has spec.managementPolicies where the desired one has none; empty as a rule. It
	// is held then.
	GatedIn string
	// Observed composed resource; nil if there is none yet.
	Observed *unstructured.Unstructured
	// Baseline is true in the first run for an XR, before anything was recorded:
	// what its Composition wishes is what it wished all along.
	Baseline bool
	// Room is how many bytes the record of the wish may take.
	Room int
	// Desired composed resource, a partial object; nil to delete it.
	Desired *unstructured.Unstructured
	// Namespace of a namespaced XR and all it composes; nil where it is not
	// known.
	Namespace *unstructured.Unstructured
	// User under which Crossplane composes.
	User policy.User
	// Resources are the names of resources that Enforcements show.
	Resources enforcement.Resources
	// Mode says what to do about unallowed changes.
	Mode v1alpha1.Mode
	// Withheld are the places of what is not created, see [WithheldCreations].
	Withheld allowance.Withheld
	// Repair says what to do about what somebody has changed or deleted by hand, and Left how many resources may be repaired now,
	// see [RepairsLeft].
	Repair v1alpha1.Repair
	Left   int
	// Was is what the XR has on record of the last run.
	Was *v1alpha1.State
	// Listed are changes of it that are listed as held, see [ListedOf].
	Listed []allowance.Listed
	// Asked is told what is put to package decision of what changes, and the answer, as
	// soon as that is there: neither is to be kept or modified. Nil for nobody.
	Asked func(*request.Request, *decision.Decision)
}

// Result is what may be applied.
type Result struct {
	// Desired is what to apply; nil to leave the resource out, so that it is
	// not created, or deleted.
	Desired *unstructured.Unstructured
	// Kept is true when the resource stays though nobody desires it.
	Kept bool
	// Held changes.
	Held []condition.Held
	// Unbuilt is true where the XR is not ready, for want of it: it was never, and the resource could have no gate.
	Unbuilt bool
	// Pending says what of an allowed change is still under way; empty when
	// the resource is as it should be and its gate is closed.
	Pending string
	// Baseline are fields that differ from what is stored and count as wished
	// all along.
	Baseline []string
	// Delegated are fields that are left to others.
	Delegated []string
	// Problems are inputs that could not be used.
	Problems []error
	// Passed are the changes that are let through.
	Passed []condition.Passed
	// Awaiting are those that are allowed, and made once what is held may be, too.
	Awaiting []condition.Passed
	// Shadow are the changes that would be decided otherwise if what is in Shadow mode were
	// enforced.
	Shadow []decision.Shadowed
	// Costs are what the expressions of policies cost.
	Costs []authority.Cost
	// Withheld are the places at which changes are held. Asked is true where it was decided which these are.
	Withheld allowance.Withheld
	Asked    bool
	// Enforcements that govern the resource; only what they except counts here.
	Enforcements []finding.Source
	// Repaired are the fields that are put back, or create.
	Repaired []string
	// Attestations are the values captured on the way to these changes, by field
	// path.
	Attestations map[string]string
	// Repairs are on record of the resource after this run, see [wish.Repairs]; nil for none.
	Repairs map[string]v1alpha1.Repairs
}

// Rests reports whether the resource is as it is to be, and nothing is to be said of it: it is applied as it is stored.
func (o Result) Rests() bool {
	return o.Desired != nil && !o.Kept && !o.Unbuilt && o.Pending == "" &&
		len(o.Held)+len(o.Baseline)+len(o.Delegated)+len(o.Problems)+len(o.Passed)+len(o.Awaiting)+len(o.Shadow)+len(o.Costs)+
			len(o.Withheld)+len(o.Repaired)+len(o.Attestations)+len(o.Repairs) == 0
}

// of is an outcome with what is recorded of a decision about a resource.
func (o Result) of(d *decision.Decision, object string) Result {
	o.Enforcements, o.Attestations, o.Shadow, o.Costs = d.Governing(), d.Attestations, d.Shadow, d.Costs
	o.Withheld, o.Asked = d.Withheld, true

	for _, f := range d.Findings {
		if f.Rule == finding.RuleRepair {
			o.Repaired = append(o.Repaired, f.Change.Field)
		}

		if f.Verdict == finding.Allowed {
			o.Passed = append(o.Passed, condition.Passed{
				Resource: object, Field: f.Change.Field, Policies: f.Policies(), Initiator: f.Initiator(),
				Approval: f.Approval, Digest: f.Digest,
			})
		}
	}

	return o
}
