// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
)

// What is not allowed must never reach the system behind a managed resource,
// not even together with what was. While the gate is closed it may be stored,
// as without us, and is remembered with what was asked for in its place, so that
// it can be put back before the gate opens. While the gate is open the provider
// acts on what it sees at once: there it is held.
//
// A credential is not remembered, for whoever reads a record would read it: a
// change whose record would have to hold one is held too.
//
// A composition function holds by itself what it would have applied, and remembers
// nothing: what comes of it is judged when Crossplane stores it. To put back what was
// asked for, it asks nobody.

// counts reports whether a change is of what a provider acts upon.
func counts(c change.Change) bool {
	return under(c, "spec") && !under(c, "spec", "managementPolicies") || externalName(c)
}

// guardedField reports whether a change is of what decides about the external object beside
// the gate: the API server lets only those change it whom we allow to.
func guardedField(c change.Change) bool { return under(c, "spec", "deletionPolicy") || externalName(c) }

// externalName reports whether a change is of which external object is meant.
func externalName(c change.Change) bool {
	return under(c, "metadata", "annotations", gate.AnnotationExternalName)
}

// putsBack reports whether a change makes of what is not allowed what was. An element
// that is removed may have stood elsewhere in the list that was asked for.
func (x *exemptions) putsBack(c change.Change) bool {
	return x.base != x.Old && counts(c) && !slices.ContainsFunc(x.away, func(o change.Change) bool {
		return c.Same(o) || c.Gone && o.Gone && o.List() == c.List() && change.Equal(o.From, c.From)
	})
}

// writeAsked remembers what was asked for, where what is stored is not that.
func (s *stamper) writeAsked() {
	stored, asked := s.wouldRemember()
	if asked == nil {
		return
	}

	rec := v1alpha1.AskedRecord{Generation: s.predictGeneration(), User: s.User.Name}

	alone, some := s.firstAlone()

	switch {
	case slices.ContainsFunc(stored, s.unallowed):
	case some:
		rec.User = alone.Initiator()
	case s.record != nil:
		rec.User = s.record.User
	}

	rec.Users, rec.Since = s.writers(stored), s.since()

	value, err := gate.FormatAsked(rec, s.object, asked)
	if err != nil {
		s.refusal = cmp.Or(s.refusal, inObject(s.object, err))

		return
	}

	// What somebody was let store beside it may have put a credential into a list,
	// which is remembered as a whole.
	if gate.RecordsSecret(s.object, asked) {
		if !s.allowed() {
			return // It is refused, and what is remembered stays.
		}

		if !s.stored {
			s.object.Object["spec"], value = asked.Object["spec"], ""
		}
	}

	annotate(s.object, v1alpha1.AnnotationAsked, value)
}

// writers are who stored what was remembered before, by field, but for what the
// request stores.
func (s *stamper) writers(stored []change.Change) map[string]string {
	out := map[string]string{}
	if s.record == nil {
		return out
	}

	for _, path := range gate.Away(s.record) {
		if slices.ContainsFunc(stored, func(c change.Change) bool { return within(path, c.Path) }) {
			continue
		}

		field := path.String()
		if out[field] = s.record.Users[field]; out[field] == "" {
			out[field] = s.record.User
		}
	}

	return out
}

// within reports whether one of two paths leads to the other.
func within(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}

// wouldRemember returns what the request stores, and what was asked for in its
// place: nil where nothing is to be remembered.
func (g *judged) wouldRemember() (stored []change.Change, asked *unstructured.Unstructured) {
	if g.base == nil || g.unread || g.record == nil && (!g.guarded() || g.allowed() && !g.confines()) {
		return nil, nil
	}

	stored = change.Between(g.Old.Object, g.New.Object)
	if !slices.ContainsFunc(stored, counts) {
		return nil, nil
	}

	return stored, &unstructured.Unstructured{Object: change.Merge(g.base.Object, g.New.Object, func(c change.Change) bool {
		return counts(c) && (!slices.ContainsFunc(stored, c.Same) || g.guarded() && g.confined(c))
	})}
}

// remembersSecret reports whether what would be remembered holds a credential, or did
// when we were asked about the same request before and held it.
func (g *judged) remembersSecret() bool {
	if g.answeredHeld() {
		return true
	}

	if g.allowed() {
		return false
	}

	_, asked := g.wouldRemember()

	return asked != nil && gate.RecordsSecret(g.New, asked)
}

// confines reports whether a change is allowed for the managed resource alone.
func (g *judged) confines() bool {
	_, some := g.firstAlone()

	return some
}
