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

// What nobody asked for must never reach the system behind a managed resource,
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

// gatekept says whether the request is a change of what a gate stands before,
// by somebody else than those who act for it.
func (d *decider) gatekept() bool { return d.Action == "" && d.gated() }

// gateBefore is what is known of the gate that stands before an object.
type gateBefore struct {
	// stands is true where there is one for who asks.
	stands bool
	// serves is true where it lets a change out, or is about to.
	serves bool
}

// gated says whether the request is one that a gate stands before, whoever asks.
func (d *decider) gated() bool { return d.gateBefore().stands }

// gateBefore looks at the gate once.
func (d *decider) gateBefore() gateBefore {
	if d.gate == nil {
		g := gateBefore{stands: d.Operation == OperationUpdate && gate.Governed(d.Old) && !gate.Ungated(d.Old) &&
			!d.provider() && d.User.Name != d.Settings.Manager}
		g.serves = g.stands && gate.Serves(d.Old)
		d.gate = &g
	}

	return *d.gate
}

// counts says whether a change is of what a provider acts upon.
func counts(c change.Change) bool {
	return under(c, "spec") && !under(c, "spec", "managementPolicies") || externalName(c)
}

// kept says whether a change is of what decides about the external object beside
// the gate: the API server lets only those change it whom we allow to.
func kept(c change.Change) bool { return under(c, "spec", "deletionPolicy") || externalName(c) }

// externalName says whether a change is of which external object is meant.
func externalName(c change.Change) bool {
	return under(c, "metadata", "annotations", gate.AnnotationExternalName)
}

// readAsked reads what was asked for of a managed resource with a gate.
func (d *decider) readAsked() {
	d.base = d.Old

	if d.Operation != OperationUpdate || !gate.Governed(d.Old) {
		return
	}

	rec, err := gate.ParseAsked(d.Old)
	if err == nil && rec != nil {
		d.base, err = gate.AskedFor(d.Old, rec)
	}

	if d.Action == "" {
		d.record = rec
	}

	if err != nil {
		d.base, d.unread = d.Old, true
		d.problem(inObject(d.Old, err))
	}

	if d.base != d.Old {
		d.away = change.Between(d.base.Object, d.New.Object)
	}
}

// putsBack says whether a change makes of what nobody asked for what was. An element
// that goes may have stood elsewhere in the list that was asked for.
func (d *decider) putsBack(c change.Change) bool {
	return d.base != d.Old && counts(c) && !slices.ContainsFunc(d.away, func(o change.Change) bool {
		return c.Same(o) || c.Gone && o.Gone && o.List() == c.List() && change.Equal(o.From, c.From)
	})
}

// writeAsked remembers what was asked for, where what is stored is not that.
func (d *decider) writeAsked() {
	alone, some := d.staying()

	stored, asked := d.wouldRemember()
	if asked == nil {
		return
	}

	rec := v1alpha1.AskedRecord{Generation: d.predictGeneration(), User: d.User.Name}

	switch {
	case slices.ContainsFunc(stored, d.disallowed):
	case some:
		rec.User = alone.Initiator()
	case d.record != nil:
		rec.User = d.record.User
	}

	rec.Users, rec.Since = d.writers(stored), d.since()

	value, err := gate.FormatAsked(rec, d.New, asked)
	if err != nil {
		d.decision.Refusal = cmp.Or(d.decision.Refusal, inObject(d.New, err))

		return
	}

	// What somebody was let store beside it may have put a credential into a list,
	// which is remembered as a whole.
	if gate.RecordsSecret(d.New, asked) {
		if !d.decision.Allowed() {
			return // It is refused, and what is remembered stays.
		}

		if !d.Final {
			d.New.Object["spec"], value = asked.Object["spec"], ""
		}
	}

	annotate(d.New, v1alpha1.AnnotationAsked, value)
}

// writers are who stored what was remembered before, by field, but for what the
// request stores.
func (d *decider) writers(stored []change.Change) map[string]string {
	out := map[string]string{}
	if d.record == nil {
		return out
	}

	for _, path := range gate.Away(d.record) {
		if slices.ContainsFunc(stored, func(c change.Change) bool { return within(path, c.Path) }) {
			continue
		}

		field := path.String()
		if out[field] = d.record.Users[field]; out[field] == "" {
			out[field] = d.record.User
		}
	}

	return out
}

// within says whether one of two paths leads to the other.
func within(a, b change.Path) bool {
	n := min(len(a), len(b))

	return slices.Equal(a[:n], b[:n])
}

// wouldRemember returns what the request stores, and what was asked for in its
// place: nil where nothing is to be remembered.
func (d *decider) wouldRemember() (stored []change.Change, asked *unstructured.Unstructured) {
	if d.base == nil || d.unread || d.record == nil && (!d.gatekept() || d.decision.Allowed() && !d.anyStays()) {
		return nil, nil
	}

	stored = change.Between(d.Old.Object, d.New.Object)
	if !slices.ContainsFunc(stored, counts) {
		return nil, nil
	}

	return stored, &unstructured.Unstructured{Object: change.Merge(d.base.Object, d.New.Object, func(c change.Change) bool {
		return counts(c) && (!slices.ContainsFunc(stored, c.Same) || d.gatekept() && d.unasked(c))
	})}
}

// revealing says whether what would be remembered holds a credential, or did
// when we were asked about the same request before and held it.
func (d *decider) revealing() bool {
	if d.answeredHeld() {
		return true
	}

	if d.decision.Allowed() {
		return false
	}

	_, asked := d.wouldRemember()

	return asked != nil && gate.RecordsSecret(d.New, asked)
}

// unasked says whether a change is one of those that nobody allowed, or allowed
// for the managed resource alone.
func (d *decider) unasked(c change.Change) bool {
	return slices.ContainsFunc(d.decision.Findings, func(f Finding) bool { return (f.Verdict == Unallowed || f.alone) && f.Change.Same(c) })
}

// disallowed says whether a change is one of those that nobody allowed.
func (d *decider) disallowed(c change.Change) bool {
	return slices.ContainsFunc(d.decision.Findings, func(f Finding) bool { return f.Verdict == Unallowed && f.Change.Same(c) })
}
