// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/decision/request"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	// refusedFor is for how long a refusal is listed of an earlier generation of the root. One of
	// its generation stays for as long as the edit does: a controller that is refused waits
	// longer each time before it tries again, up to a quarter of an hour.
	refusedFor = 10 * time.Minute
	// refusedAgain is how often it is noted that a write is refused once more.
	refusedAgain = 5 * time.Minute
	// maxRefusedMessage is how many bytes of a message are kept.
	maxRefusedMessage = 1024
)

// Refusal is a write that was refused, as a status lists it; false where it is none of those that
// follow from an edit of a root which nobody allowed. Nothing is approved of what a person
// is refused, or of what was only tried: what is stored of it nobody has seen.
func Refusal(req *request.Request, d *decision.Decision) (v1alpha1.RefusedChange, bool) {
	if req.DryRun || req.Parent == nil || !req.User.Machine() || !approvesEdits(req.Parent) {
		return v1alpha1.RefusedChange{}, false
	}

	for _, f := range d.Findings {
		if f.Verdict != finding.Unallowed {
			continue
		}

		digest := f.Approvable().Digest
		if digest == "" {
			continue
		}

		u := req.New
		if u == nil {
			u = req.Old
		}

		ref := RefTo(u)
		if req.Old == nil {
			ref.UID = "" // The API server has given it one that the next try does not have.
		}

		h := hold.HeldChange(f)

		return v1alpha1.RefusedChange{
			Digest: digest, Ref: ref, Field: f.Change.Field, From: h.From, To: h.To, User: req.User.Name,
			Message:  change.Text(d.Answer().Reason, maxRefusedMessage),
			Destroys: h.Destroys || Destroys(u.GroupVersionKind().GroupKind(), u, f.Change.Field), ParentGeneration: resource.Generation(req.Parent),
		}, true
	}

	return v1alpha1.RefusedChange{}, false
}

// approvesEdits reports whether edits of an object are approved by themselves: of a root that is none of
// Crossplane's. Of those what follows is held, and approved as it is.
func approvesEdits(u *unstructured.Unstructured) bool {
	if resource.IsComposite(u) || resource.IsClaim(u) || !storesEdits(u) {
		return false
	}

	_, below := resource.ParentOf(u)

	return !below
}

// storesEdits reports whether an object records an edit that is stored though nobody allowed it.
func storesEdits(u *unstructured.Unstructured) bool {
	stored, err := allowance.ParseStored(u)

	return err != nil || len(stored) > 0
}

// Refuse adds a refusal to a list of them. False where that says all already.
func Refuse(list []v1alpha1.RefusedChange, r v1alpha1.RefusedChange, now time.Time) ([]v1alpha1.RefusedChange, bool) {
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	r.Since, r.Last = at, at

	same := func(o v1alpha1.RefusedChange) bool {
		return o.Digest == r.Digest || KeyOf(o.Ref) == KeyOf(r.Ref) && o.Field == r.Field
	}

	if i := slices.IndexFunc(list, same); i >= 0 {
		was := list[i]
		if was.Digest == r.Digest && was.ParentGeneration == r.ParentGeneration && at.Sub(was.Last.Time) < refusedAgain {
			return list, false
		}

		r.Since = was.Since
	}

	out := append(slices.DeleteFunc(slices.Clone(list), same), r)
	slices.SortFunc(out, func(a, b v1alpha1.RefusedChange) int {
		return cmp.Or(b.Last.Compare(a.Last.Time), cmp.Compare(a.Digest, b.Digest))
	})

	return out[:min(len(out), v1alpha1.MaxPendingRefused)], true
}

// Noted reports whether a list says of a refusal all that is to be said, by digest.
func Noted(noted map[string]v1alpha1.RefusedChange, r v1alpha1.RefusedChange, now time.Time) bool {
	was, ok := noted[r.Digest]
	if !ok {
		return false
	}

	_, changed := Refuse([]v1alpha1.RefusedChange{was}, r, now)

	return !changed
}

// refusals are those of before that are still of interest: as long as an edit of the root is
// recorded from which what was refused would follow.
func (s *summary) refusals() []v1alpha1.RefusedChange {
	if !approvesEdits(s.Input.Root) || len(s.edits) == 0 {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(s.Input.Previous.Refused), func(r v1alpha1.RefusedChange) bool {
		return r.ParentGeneration < resource.Generation(s.Input.Root) && s.now.Sub(r.Last.Time) > refusedFor
	})
}

// fromEdits adds the edits of the root where something is refused that follows from them. Those that
// the record has no room for have no digest.
func (s *summary) fromEdits(refused []v1alpha1.RefusedChange) {
	if len(refused) == 0 {
		return
	}

	edits, err := input.RecordedEdits(s.Input.Root)
	if err != nil {
		return // Whoever writes it next reports it.
	}

	root := RefTo(s.Input.Root)
	destroys := slices.ContainsFunc(refused, func(r v1alpha1.RefusedChange) bool { return r.Destroys })

	for _, e := range edits {
		e.Ref, e.Parent, e.Destroys, e.Missing, e.At = root, &root, destroys, refused[0].Message, ""
		e.Cause = &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: allowance.Author(e)}
		e.Stored = &v1alpha1.StoredChange{Where: e.Stored.Where, Approvals: e.Stored.Approvals}
		s.add(&entry{HeldChange: e})
	}
}
