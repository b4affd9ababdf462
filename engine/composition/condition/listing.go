// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// List is what the manager is told of all that an XR composes: what is held, why it is asked
// for, and how far the approvals are whose allowances the XR carries. Records is true where
// edits of the XR leave a record: see [request.Basis.RecordsEdits].
func List(
	xr *unstructured.Unstructured, status *Status, observed map[string]*unstructured.Unstructured, held []Held, passed []Passed, records bool,
) v1alpha1.State {
	was, known := resource.StateOf(xr)
	if !known {
		was = &v1alpha1.State{}
	}

	l := lister{xr: xr, was: was}
	l.look(records)

	out, news := v1alpha1.State{Progress: status.Progress}, slices.Clone(status.News)

	for _, h := range held {
		if h.OnXR || h.Passed {
			news = append(news, h.String())

			if h.Passed && !h.OnXR {
				out.Passed = append(out.Passed, h.Change)
			}

			continue
		}

		e := l.complete(h.Change)
		news = append(news, strings.Join([]string{h.Resource, e.Field, e.From, e.To, e.Missing}, "\x00"))
		out.Changes = append(out.Changes, e)
	}

	if len(news) > 0 {
		out.News = fmt.Sprintf("%016x", wish.Hash(strings.Join(news, "\n")))
	}

	slices.SortStableFunc(out.Changes, compareEntries)

	out.Unsteady, out.Revision = l.unsteady, resource.RevisionOf(xr)

	if out.Unseen = l.unseen && len(out.Changes) > 0; l.unseen && !out.Unseen {
		l.seen = seen{specDigest(xr), resource.Generation(xr)}
	}

	out.Spec, out.SpecGeneration, out.Fields = l.seen.spec, l.seen.generation, formatFields(hashedFields(xr))

	out.Approvals = uses(xr, was, observed, out.Changes, passed)

	if slices.ContainsFunc(out.Changes, func(e v1alpha1.HeldChange) bool { return e.Cause.Type == v1alpha1.CauseComposition }) {
		out.Revision = was.Revision
	}

	if is := resource.RevisionOf(xr); is != out.Revision {
		out.Ran = is
	}

	return out
}

// compareEntries orders what is listed: what destroys something first, for the list may be cut.
func compareEntries(a, b v1alpha1.HeldChange) int {
	switch {
	case a.Destroys == b.Destroys:
		return 0
	case a.Destroys:
		return -1
	default:
		return 1
	}
}

// A lister completes what is listed of an XR, by what was listed before.
type lister struct {
	xr       *unstructured.Unstructured
	was      *v1alpha1.State
	unsteady map[string]int
	// seen is what the next run compares the XR with, and unseen is true where nobody knows who has edited
	// it.
	seen   seen
	unseen bool
}

// complete adds the cause of a change, and takes away its digest where it is another one each
// time though nobody has changed the XR.
func (l *lister) complete(e v1alpha1.HeldChange) v1alpha1.HeldChange {
	before := l.before(e)

	if e.Cause == nil {
		e.Cause = l.cause()
	}

	if before != nil && before.Digest == e.Digest && before.Cause != nil && stays(e, before.Cause, e.Cause) {
		e.Cause = before.Cause
	}

	if before == nil || e.Digest == "" || l.was.Progress.Generation != resource.Generation(l.xr) {
		return e
	}

	key := steadyKey(e)

	n := l.was.Unsteady[key]
	if before.Unstable {
		n = v1alpha1.MaxUnsteady
	} else if before.Digest != e.Digest {
		n = min(n+1, v1alpha1.MaxUnsteady)
	}

	if n == 0 || before.Digest == e.Digest && !before.Unstable {
		return e
	}

	if l.unsteady == nil {
		l.unsteady = map[string]int{}
	}

	l.unsteady[key] = n

	if n >= v1alpha1.MaxUnsteady {
		out := *before // As it was: it is not to be written each time.
		out.Digest, out.Unstable = "", true

		return out
	}

	return e
}

// stays reports whether the cause of a change is the one that was listed of it, not the one that there is
// now: an XR names its new revision one run after Crossplane has begun to use it, but what is recorded
// of an edit is stored with that. Who has edited it since then did not ask for what was held before,
// unless its value is hidden: it may be another one by now.
func stays(e v1alpha1.HeldChange, was, is *v1alpha1.Cause) bool {
	if is.Type == v1alpha1.CauseEdit {
		return !e.Masked
	}

	return was.Type != v1alpha1.CausePipeline
}

// placed is where a change is: two elements of a list may have one path, and one element another path each time.
func placed(e v1alpha1.HeldChange) string { return cmp.Or(e.Place, e.Field) }

// before is what was listed of the same field of the same object.
func (l *lister) before(e v1alpha1.HeldChange) *v1alpha1.HeldChange {
	var out *v1alpha1.HeldChange

	for i := range l.was.Changes {
		b := &l.was.Changes[i]
		if b.Ref != e.Ref || b.ComposedResource != e.ComposedResource || placed(*b) != placed(e) {
			continue
		}

		if b.Digest == e.Digest {
			return b
		}

		out = cmp.Or(out, b)
	}

	return out
}

// steadyKey stands for a field of a composed resource.
func steadyKey(e v1alpha1.HeldChange) string {
	return strings.Join([]string{e.ComposedResource, e.Ref.Kind, placed(e)}, " ")
}

// cause is why what was not changed by hand is asked for.
func (l *lister) cause() *v1alpha1.Cause {
	if l.unseen {
		return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: authority.UnknownRequester}
	}

	if edits, err := allowance.ParseStored(l.xr); err == nil && len(edits) > 0 {
		newest := slices.MaxFunc(edits, func(a, b v1alpha1.HeldChange) int {
			return allowance.StoredSince(a).Compare(allowance.StoredSince(b))
		})

		return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: newest.Cause.User, Since: newest.Cause.Since}
	}

	if NewRevision(l.xr) {
		return &v1alpha1.Cause{Type: v1alpha1.CauseComposition, Revision: resource.RevisionOf(l.xr)}
	}

	generation := resource.Generation(l.xr)
	if p, reports := resource.ProgressOf(l.xr); reports && p.Settled.Generation < generation {
		settled := p.Settled.Generation
		if settled == 0 { // It is not known, as after a pipeline that failed.
			settled = generation - 1
		}

		entries, _ := allowance.ParseTrace(l.xr)
		for _, e := range entries { // The newest first; Crossplane itself may have written it since.
			if e.Generation > settled {
				return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: e.Initiator}
			}
		}
	}

	return &v1alpha1.Cause{Type: v1alpha1.CausePipeline}
}

// uses are the allowances of approvals that an XR carries, and how far each is.
func uses(
	xr *unstructured.Unstructured, was *v1alpha1.State, observed map[string]*unstructured.Unstructured,
	held []v1alpha1.HeldChange, passed []Passed,
) []v1alpha1.ApprovalUse {
	list, err := allowance.Parse(xr)
	if err != nil {
		return was.Approvals // Reported with the decisions.
	}

	if !slices.ContainsFunc(list, allowance.OfApproval) {
		return nil
	}

	var (
		out      []v1alpha1.ApprovalUse
		reported = input.ReadReported(xr)
		records  = recordsOf(observed)
		asked    = map[string]bool{}
	)

	for _, e := range held {
		asked[e.Digest] = true
	}

	for _, a := range list {
		if !allowance.OfApproval(a) || allowance.External(a) {
			continue
		}

		use := v1alpha1.ApprovalUse{Approval: a.Approval, Digest: a.Digest, State: v1alpha1.ApprovalAbsent}
		through := slices.IndexFunc(passed, func(p Passed) bool { return p.Approval == a.Approval && p.Digest == a.Digest })

		switch {
		case reported.Used(a) || shown(records, a):
			use.State = v1alpha1.ApprovalUsed
		case through >= 0 && !passed[through].Awaits:
			use.State = v1alpha1.ApprovalApplying
		case through >= 0 || asked[a.Digest]:
			use.State = v1alpha1.ApprovalWaiting
		}

		out = append(out, use)
	}

	return out
}

// recordsOf are those of composed resources. What does not parse is reported when it is written.
func recordsOf(observed map[string]*unstructured.Unstructured) []v1alpha1.ObjectRecord {
	out := make([]v1alpha1.ObjectRecord, 0, len(observed))

	for _, u := range observed {
		if rec, err := allowance.ParseRecord(u); err == nil && len(rec.Used) > 0 {
			out = append(out, rec)
		}
	}

	return out
}

// shown reports whether the record of a composed resource shows that an allowance was used. The manager sees when one
// that is deleted is gone.
func shown(records []v1alpha1.ObjectRecord, a v1alpha1.Allowance) bool {
	return a.Mutation != v1alpha1.MutationDelete &&
		slices.ContainsFunc(records, func(rec v1alpha1.ObjectRecord) bool { return allowance.Used(rec, a) })
}
