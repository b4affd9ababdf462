// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"maps"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision/authority"
)

const (
	// Unknown is the requester of an edit that was stored while nobody could see whose it is.
	Unknown = "unknown"
	// unlisted is the field of the edits that a record has no room for. Of these only the last
	// user is known.
	unlisted = "(more)"
	// maxRequesters is how many of them a status names.
	maxRequesters = 64
	// minCut is how many bytes a user name has at least that was cut when it was written down.
	minCut = 125
)

// causeOf is why a change that an object's annotation names is asked for. Of what an XR composes
// that is the hand of whoever is named, or else its pipeline; all else follows from an edit.
func (s *summary) causeOf(o *Object, user string) *v1alpha1.Cause {
	composed := o.Parent != nil && s.composites[o.Parent.UID]

	switch {
	case composed && user != "":
		return &v1alpha1.Cause{Type: v1alpha1.CauseDrift, User: user}
	case composed:
		return &v1alpha1.Cause{Type: v1alpha1.CausePipeline}
	case o.Parent == nil || s.edited(user):
		return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: known(user)}
	case len(s.edits) > 0:
		return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: known(allowance.Author(s.edits[len(s.edits)-1]))}
	default:
		return &v1alpha1.Cause{Type: v1alpha1.CauseEdit, User: known(user)}
	}
}

// edited reports whether an edit of the root is a user's.
func (s *summary) edited(user string) bool {
	return slices.ContainsFunc(s.edits, func(e v1alpha1.HeldChange) bool { return allowance.Author(e) == user })
}

// known is a user as a status names them.
func known(user string) string {
	if user == "" || user == "(unknown)" {
		return Unknown
	}

	return user
}

// explain completes the cause of an entry, and since when it is held: what is below a root that
// was edited is taken to follow from that, unless something else is known.
func (s *summary) explain(e *entry) {
	if e.HeldChange.Cause == nil {
		e.HeldChange.Cause = &v1alpha1.Cause{}
	}

	// An XR does not know any more what its pipeline asked for before that failed.
	if was := s.before[e.HeldChange.Digest]; was != nil && was.Cause != nil && e.HeldChange.Cause.Type == v1alpha1.CausePipeline &&
		e.HeldChange.Digest != "" {
		e.HeldChange.Cause = was.Cause.DeepCopy()
	}

	switch e.HeldChange.Cause.Type {
	case v1alpha1.CauseComposition, v1alpha1.CauseDrift:
	case v1alpha1.CauseEdit:
		e.HeldChange.Cause.User = known(e.HeldChange.Cause.User)
	default:
		e.HeldChange.Cause.Type = v1alpha1.CausePipeline
		if len(s.edits) > 0 {
			e.HeldChange.Cause.Type, e.HeldChange.Cause.User = v1alpha1.CauseEdit, known(allowance.Author(s.edits[len(s.edits)-1]))
		}
	}

	e.HeldChange.Cause.Since = s.since(e)
}

// requesters are the users who ask for what is held, and how many people have to approve it. Who
// edited the root is one of them as long as that is recorded; so is whoever asked by hand.
func (s *summary) requesters() (users []string, required int32) {
	all := map[string]bool{}

	for _, e := range s.edits {
		all[known(allowance.Author(e))] = true
		all[Unknown] = all[Unknown] || e.Field == unlisted
	}

	for _, e := range s.collection.entries {
		if e.HeldChange.Cause.Type == v1alpha1.CauseEdit {
			all[e.HeldChange.Cause.User] = true
		}

		if e.askedBy != "" {
			all[e.askedBy] = true
		}
	}

	if len(s.lost) > 0 {
		for _, user := range s.Input.Previous.Requesters {
			all[user] = true
		}
	}

	// Nobody could be compared with a name that was cut.
	for user, asks := range all {
		if asks && len(user) >= minCut && strings.HasSuffix(user, "...") {
			all[Unknown] = true
		}
	}

	maps.DeleteFunc(all, func(_ string, asks bool) bool { return !asks })

	users = slices.Sorted(maps.Keys(all))
	if len(users) > maxRequesters {
		users = slices.DeleteFunc(users, func(user string) bool { return user == Unknown })
		users = append(users[:maxRequesters-1], Unknown)
		slices.Sort(users)
	}

	required = authority.RequiredApprovals(s.edits)
	unknown := func(e v1alpha1.HeldChange) bool { return known(allowance.Author(e)) == Unknown }
	if slices.Contains(users, Unknown) && !slices.ContainsFunc(s.edits, unknown) {
		required++
	}

	return users, required
}
