// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/rule"
	"github.com/kausality-io/kausality-crossplane/engine/decision/stamp"
	"github.com/kausality-io/kausality-crossplane/engine/message"
)

// Decision is the answer to a Request.
type Decision struct {
	// Findings on every gated change, sorted by field.
	Findings []finding.Finding
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
	Costs []authority.Cost
	// Refusal says why what is asked cannot be done at all, such as an
	// annotation over its limit. Nil otherwise.
	Refusal error

	// Withheld are the places at which changes are held now; nil for none.
	Withheld allowance.Withheld

	// governing are the Enforcements that govern the object, in order.
	governing []finding.Source
}

// Allowed reports whether every change was asked for or is not governed.
func (d *Decision) Allowed() bool {
	for _, f := range d.Findings {
		if f.Verdict == finding.Unallowed {
			return false
		}
	}

	return true
}

// answer is the decision, once all is stamped.
func answer(in *input.Inputs, j *rule.Judged, t *hold.Taken, s *stamp.Stamped) Decision {
	out := Decision{
		Findings: j.Findings, Action: j.Action, Object: s.Object, Held: t.Records, Refusal: s.Refusal,
		Withheld: t.Places, Attestations: s.Attestations, Kept: s.Kept, Overruled: s.Overruled,
		Warnings: slices.Concat(in.Proposal.Warnings, warnings(in.Objects, in.Earlier, j)),
		Problems: in.Problems.List, Costs: in.Authority.Ledger.Costs,
	}

	for _, e := range in.Enforced.Governing {
		out.Enforcements = append(out.Enforcements, e.Name())
		out.governing = append(out.governing, finding.SourceOfEnforcement(e))
	}

	slices.Sort(out.Enforcements)
	slices.SortFunc(out.governing, finding.CompareSources)

	if j.Refuses() {
		out.title = in.Objects.Title() + ": "
	}

	return out
}

// HeldNow are the held changes with their fields. The others were listed when they were held first, and are a number here.
func (d *Decision) HeldNow() []v1alpha1.HeldChange {
	return slices.DeleteFunc(slices.Clone(d.Held), func(h v1alpha1.HeldChange) bool {
		_, more := allowance.MoreHeld(h)

		return more
	})
}

// DescribeHeld says in at most so many characters what is held; of one change also why, where there is room.
func (d *Decision) DescribeHeld(most int) string {
	list := d.HeldNow()
	texts := make([]string, len(list))

	for i, h := range list {
		texts[i] = Describe(h)
	}

	const one, more = "change held: ", "changes held: "

	if len(list) != 1 {
		return more + message.Join(texts, most-len(more))
	}

	why := []string{list[0].Missing}
	of := func(f finding.Finding) bool { return f.Verdict == finding.Unallowed && f.Change.Field == list[0].Field }
	if i := slices.IndexFunc(d.Findings, of); i >= 0 {
		why = d.Findings[i].Why()
	}

	return message.Cut(one+texts[0]+": "+strings.Join(why, "; "), most)
}

// Describe says what is held, without why.
func Describe(h v1alpha1.HeldChange) string {
	return fmt.Sprintf("%s (%s → %s)", h.Field, message.OrUnset(h.From), message.OrUnset(h.To))
}
