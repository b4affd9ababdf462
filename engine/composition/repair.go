// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/decision/finding"
	"github.com/kausality-io/kausality-crossplane/engine/decision/hold"
	"github.com/kausality-io/kausality-crossplane/engine/decision/input"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Crossplane puts back what somebody has changed or deleted by hand of what it composes. So it does with the function in the
// pipeline, where that desires what it did before: not of what has a gate, and not for ever against somebody who does it again.

// MaxRepairs is how many composed resources of one XR are repaired within [RepairsWithin].
const (
	MaxRepairs    = 10
	RepairsWithin = time.Minute
)

// forgotten is after which time without a repair of something it counts as the first again.
const forgotten = 24 * time.Hour

// waits are how long after the last repair of something the next one is, by how many there were.
func waits() [v1alpha1.MaxRepairs]time.Duration {
	return [...]time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute} //nolint:mnd // As documented.
}

// due reports whether something may be repaired once more.
func due(was v1alpha1.Repairs, now time.Time) bool {
	return was.Count < v1alpha1.MaxRepairs && !now.Before(nextRepair(was))
}

// again is what is on record of something once it is repaired now.
func again(was v1alpha1.Repairs, now time.Time) v1alpha1.Repairs {
	if was.Count <= 0 || was.Count < v1alpha1.MaxRepairs && over(was, now) {
		was = v1alpha1.Repairs{First: now.Unix()}
	}

	was.Count, was.Last = was.Count+1, now.Unix()

	return was
}

// over reports whether it was repaired so long ago that it may be forgotten.
func over(was v1alpha1.Repairs, now time.Time) bool {
	return now.Sub(time.Unix(was.Last, 0)) >= forgotten
}

// RepairsLeft is how many composed resources of an XR may be repaired now.
func RepairsLeft(was *v1alpha1.State, observed map[string]*unstructured.Unstructured, now time.Time) int {
	left := MaxRepairs
	lately := func(r v1alpha1.Repairs) bool { return now.Sub(time.Unix(r.Last, 0)) < RepairsWithin }

	for _, r := range was.Again {
		if lately(r) {
			left--
		}
	}

	for _, u := range observed {
		all, _ := wish.Repairs(u) // Reported with the decision.
		delete(all, wish.KeyOfCreation)

		if slices.ContainsFunc(slices.Collect(maps.Values(all)), lately) {
			left--
		}
	}

	return max(left, 0)
}

// mends reports whether the resource is one that is repaired at all. Of one that Crossplane has not applied, such as a restored one,
// it is not known what it was.
func (r composed) mends() bool {
	switch {
	case !r.mending.apply || r.mode == v1alpha1.ModeAudit || resource.Deleting(r.XR):
		return false
	case r.Observed == nil:
		return true
	}

	fields, err := managedfields.Of(r.Observed, r.manager)

	return err == nil && fields.Applied() && !resource.IsManaged(r.Observed) && !resource.Deleting(r.Observed)
}

// repair tells which changes put back what somebody did by hand, and may do so now. Nil where none does. Of most resources nobody
// asks: nothing of them changes.
func (r composed) repair() func(map[string]any, change.Change) bool {
	if r.Desired == nil || r.mending.left <= 0 || !r.mending.apply {
		return nil
	}

	if r.Observed == nil {
		return func(_ map[string]any, c change.Change) bool {
			return c.Field == v1alpha1.MutationCreate && r.mends() && r.madeBefore() && r.mayCreate()
		}
	}

	of := sync.OnceValue(r.mender)

	return func(merged map[string]any, c change.Change) bool {
		m := of()

		return m != nil && m.repairs(merged, c)
	}
}

// A mender tells which changes of an observed resource put back what somebody did by hand.
type mender struct {
	of      composed
	had     map[string]v1alpha1.Repairs
	places  map[string]bool // Of had, and of what is repaired now.
	reverts func(map[string]any, change.Change) bool
	theirs  func(change.Path) bool
	finder  wish.Finder
	waits   func() bool
}

// mender is that of the resource; nil where it is not repaired.
func (r composed) mender() *mender {
	had, err := wish.Repairs(r.Observed)
	if err != nil || !r.mends() {
		return nil // Reported with the decision.
	}

	out := &mender{of: r, had: had, places: map[string]bool{}, reverts: r.repairs(), theirs: r.theirs()}
	for key := range had {
		out.places[key] = true
	}

	return out
}

func (m *mender) repairs(merged map[string]any, c change.Change) bool {
	key, ok := m.finder.KeyOf(m.of.Observed.Object, merged, c)
	if !ok || !m.places[key] && len(m.places) >= wish.MaxPlaces || !due(m.had[key], m.of.mending.now) || !m.reverts(merged, c) ||
		m.theirs(c.Path) {
		return false
	}

	if m.waits == nil {
		m.waits = sync.OnceValue(func() bool { return !m.of.waitsUntil(merged, m.reverts, m.had).IsZero() })
	}

	if m.waits() {
		return false
	}

	m.places[key] = true

	return true
}

// waitsUntil is when all that somebody has changed of the resource may be put back, for it is not put back in part; zero for now.
// What is left alone does not count.
func (r composed) waitsUntil(
	merged map[string]any, repairs func(map[string]any, change.Change) bool, had map[string]v1alpha1.Repairs,
) time.Time {
	var out time.Time

	if len(had) == 0 {
		return out
	}

	finder := &wish.Finder{}

	for _, c := range change.Between(r.Observed.Object, merged) {
		key, ok := finder.KeyOf(r.Observed.Object, merged, c)
		was := had[key]

		if !ok || was.Count >= v1alpha1.MaxRepairs || due(was, r.mending.now) || !repairs(merged, c) {
			continue
		}

		if next := nextRepair(was); next.After(out) {
			out = next
		}
	}

	return out
}

// nextRepair is when something may be repaired again that is not left alone.
func nextRepair(was v1alpha1.Repairs) time.Time {
	return time.Unix(was.Last, 0).Add(waits()[max(was.Count, 0)])
}

// mayCreate reports whether the resource may be created again now: it may be due, or was not seen since it was.
func (r composed) mayCreate() bool {
	was := r.mending.was.Again[r.Name]

	return was.Count > 0 && !was.Seen || due(was, r.mending.now)
}

// theirs tells which fields somebody else has changed last, whom a policy or a window let change the resource itself.
func (r composed) theirs() func(change.Path) bool {
	entries, err := allowance.ParseTrace(r.Observed)
	if err != nil {
		return func(change.Path) bool { return true } // Reported with the decision.
	}

	return func(at change.Path) bool {
		i := slices.IndexFunc(entries, func(e v1alpha1.TraceEntry) bool { return change.FieldCovers(e.Field, at) })

		if i < 0 || len(entries[i].Trace) != 1 || entries[i].Initiator == r.user {
			return false
		}

		return entries[i].By != "" || !strings.HasPrefix(entries[i].Initiator, input.InitiatorOfWindow(""))
	}
}

// madeBefore reports whether the resource is desired as it was when it was last let through. No values of a Secret are on record: there
// the XR has to have settled with nothing of it held.
func (r composed) madeBefore() bool {
	if r.mending.was == nil || secret(r.Desired) && (!r.settled() || heldIn(r.mending.was, r.Name)) {
		return false
	}

	now := wish.Made{}
	now.Set(r.Name, asMade(r.Desired))

	return wish.MadeOf(r.mending.was).Has(r.Name, now.Of(r.Name))
}

// heldIn reports whether the list of what was held in a run has anything of a composed resource but drift, or may have: one that was
// cut says of none that it has not.
func heldIn(was *v1alpha1.State, name string) bool {
	return was.More > 0 || slices.ContainsFunc(was.Changes, func(c v1alpha1.HeldChange) bool {
		return c.ComposedResource == name && (c.Cause == nil || c.Cause.Type != v1alpha1.CauseDrift)
	})
}

// repairsSecret reports whether what is desired of a Secret puts back what somebody did by hand. Nothing is recorded of its values:
// it is so where somebody else wrote it last, the XR has settled since it was asked for anything, and all but the values is desired
// as it was.
func (r composed) repairsSecret(merged map[string]any, c change.Change) bool {
	fields, err := managedfields.Of(r.Observed, r.manager)

	return err == nil && r.madeBefore() && !c.Gone && !c.Removal() && !fields.Manages(merged, c.Path)
}

// settled reports whether the XR had settled in the last run, and nothing is asked of it since then.
func (r composed) settled() bool {
	p, reports := resource.ProgressOf(r.XR)
	generation := resource.Generation(r.XR)

	return reports && p.Phase == v1alpha1.PhaseSettled && p.Settled.Generation == generation &&
		p.Settled.Request == allowance.LastRequest(r.XR, generation) && !unknownCause(r.XR)
}

// repairsAfter are on record of the resource once what is decided of a change is done.
func (r composed) repairsAfter(d *decision.Decision, merged *unstructured.Unstructured) map[string]v1alpha1.Repairs {
	had, _ := wish.Repairs(r.Observed) // Reported with the decision.
	repairs := func(f finding.Finding) bool { return f.Rule == finding.RuleRepair }

	if len(had) == 0 && !slices.ContainsFunc(d.Findings, repairs) {
		return nil
	}

	finder, held, next := &wish.Finder{}, map[string]bool{}, map[string]v1alpha1.Repairs{}

	for _, f := range d.Findings {
		key, ok := finder.KeyOf(r.Observed.Object, merged.Object, f.Change)

		switch {
		case !ok:
		case repairs(f):
			next[key] = again(had[key], r.mending.now)
		case f.Verdict == finding.Unallowed:
			held[key] = true
		}
	}

	for key, was := range had {
		if _, now := next[key]; !now && (held[key] || !over(was, r.mending.now)) {
			next[key] = was
		}
	}

	return next
}

// createAgain notes a resource that is created again. It counts, and is told, once more only where it was seen since then.
func (r composed) createAgain(out *Result) {
	made := r.mending.was.Again[r.Name]
	if made.Count <= 0 || made.Seen {
		made = again(made, r.mending.now)
		made.Seen = false
	} else {
		out.Repaired = nil
	}

	made.Of = wish.MadeOf(r.mending.was).Of(r.Name)

	out.Repairs = map[string]v1alpha1.Repairs{wish.KeyOfCreation: made}
}

// unrepaired is a change that is held, with why it is not repaired where it would be.
func (r composed) unrepaired(
	merged *unstructured.Unstructured, f finding.Finding, repairs func(map[string]any, change.Change) bool,
) (out v1alpha1.HeldChange, own bool) {
	out = hold.HeldChange(f)
	if repairs == nil || !repairs(merged.Object, f.Change) {
		return out, false
	}

	had, _ := wish.Repairs(r.Observed) // Reported with the decision.
	key, _ := (*wish.Finder)(nil).KeyOf(r.Observed.Object, merged.Object, f.Change)
	why := cmp.Or(r.whyNotRepaired(had[key]), r.repairedTogether(merged, repairs, had))
	out.Missing, out.Cause = cmp.Or(why, out.Missing), &v1alpha1.Cause{Type: v1alpha1.CauseDrift}

	return out, why != ""
}

// repairedTogether says when something is repaired that waits for what else somebody has changed of the resource; empty for nothing.
func (r composed) repairedTogether(
	merged *unstructured.Unstructured, repairs func(map[string]any, change.Change) bool, had map[string]v1alpha1.Repairs,
) string {
	until := r.waitsUntil(merged.Object, repairs, had)
	if until.IsZero() {
		return ""
	}

	return "the next repair, with the other changes by hand, is at " + until.UTC().Format(time.RFC3339)
}

// whyNotRepaired says why something is not repaired now: when it is next, and how often it was; empty for another reason.
func (r composed) whyNotRepaired(was v1alpha1.Repairs) string {
	since := time.Unix(was.First, 0).UTC().Format(time.RFC3339)

	switch {
	case was.Count >= v1alpha1.MaxRepairs:
		return fmt.Sprintf("Contested: repaired %d times since %s, and changed again each time; no further repair",
			was.Count, since)
	case !due(was, r.mending.now):
		return fmt.Sprintf("next repair at %s: repaired %d of %d times since %s, and changed again",
			nextRepair(was).UTC().Format(time.RFC3339), was.Count, v1alpha1.MaxRepairs, since)
	case r.mending.left > 0: // It belongs to something that is held.
		return ""
	default:
		return fmt.Sprintf("%d resources of %s were repaired within a minute; this one waits", MaxRepairs, condition.Describe(r.XR))
	}
}

// stampRepairs records what is repaired, and what was of late.
func stampRepairs(out *Result) {
	if out.Desired == nil || out.Repairs == nil {
		return
	}

	text, err := wish.WithRepairs(resource.Annotation(out.Desired, v1alpha1.AnnotationWish), out.Desired, out.Repairs)
	if err != nil {
		out.Problems = append(out.Problems, inObserved(out.Desired, err))

		return
	}

	annotate(out.Desired, v1alpha1.AnnotationWish, text)
}

// asMade is what a pipeline desires of a resource, as it is recorded that it was made: the values of a Secret are not.
func asMade(desired *unstructured.Unstructured) map[string]any {
	if !secret(desired) {
		return desired.Object
	}

	out := writable(desired)
	encodeSecret(out)

	delete(out.Object, "stringData") // What is no text stays there.

	data := map[string]any{}
	for key := range resource.Map(out.Object, "data") {
		data[key] = mask.Text
	}

	out.Object["data"] = data

	return out.Object
}

// DescribeRepair says what is repaired: a field of a composed resource, or create.
func DescribeRepair(name string, u *unstructured.Unstructured, field string) string {
	if field == v1alpha1.MutationCreate {
		return condition.Unmade(u.GetKind(), name)
	}

	return condition.Describe(u) + " " + field
}

// lasting reports whether a composed resource that is gone is not created again without anybody's leave: it has a gate, or may have
// one below it, or it was more than what is desired of it.
func lasting(u *unstructured.Unstructured) bool {
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"}, schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Pod"}:
		return true
	default:
		return resource.IsManaged(u) || resource.IsComposite(u) || resource.IsClaim(u) || resource.Composing(u)
	}
}

// Remember notes in the state of an XR what was let through of each composed resource, by its name, so that it can be created again.
func Remember(
	state, was *v1alpha1.State, observed, desired map[string]*unstructured.Unstructured, outcomes map[string]Result, now time.Time,
) {
	before, made, again := wish.MadeOf(was), wish.Made{}, map[string]v1alpha1.Repairs{}

	for name, u := range desired {
		there, out := observed[name], outcomes[name]

		switch {
		case there != nil && lasting(there), there == nil && before.Of(name) == "":
		case there == nil || out.holds():
			made.Keep(name, before)
		default:
			made.Set(name, asMade(u))
		}

		r, repaired := was.Again[name]
		if all, err := wish.Repairs(cmp.Or(there, out.Desired, u)); err == nil && all[wish.KeyOfCreation].Last >= r.Last {
			if made, ok := all[wish.KeyOfCreation]; ok {
				r, repaired = made, true
				r.Of = ""
			}
		}

		if r.Seen = r.Seen || there != nil; repaired && (there == nil || !over(r, now)) {
			again[name] = r
		}
	}

	state.Made = made.Format()
	if len(again) > 0 {
		state.Again = again
	}
}

// holds reports whether anything of a resource is held.
func (o Result) holds() bool {
	for _, h := range o.Held {
		if !h.Passed {
			return true
		}
	}

	return false
}

// repairs tells which changes revert what somebody did by hand: the desired value is the recorded one.
func (r composed) repairs() func(map[string]any, change.Change) bool {
	if r.Observed == nil || r.Desired == nil {
		return nil
	}

	if secret(r.Observed) {
		return r.repairsSecret
	}

	records := sync.OnceValues(func() (last, now *wish.Record) {
		desired, last, err := r.desired()
		if err != nil {
			return nil, nil
		}

		return last, wish.RecordOf(desired.Object)
	})

	finder := &wish.Finder{}
	stored := sync.OnceValue(func() *wish.Record { return wish.RecordOf(r.Observed.Object) })

	return func(merged map[string]any, c change.Change) bool {
		last, now := records()

		return last.Reverts(now, stored(), finder, r.Observed.Object, merged, c)
	}
}
