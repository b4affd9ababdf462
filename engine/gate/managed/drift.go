// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Drift is what somebody has changed of an external object since the gate last closed. One update makes all of an external object
// what the spec says: a gate that opens for an allowed change would revert the drift as well, and nobody allowed that.

const (
	// maxDiffers is how many fields a record names that differ when a gate closes, and how many of them are drift one by one.
	maxDiffers = 8
	// maxCompared is how many fields a record tells of: none where there are more.
	maxCompared = 128
)

// Compared notes in a record, which closes a gate, in which fields the external object was compared, and differs then. Where the
// gate was not open for Update, or is given up on, these stay as they were: what differs since is drift still. Of more than
// [maxCompared] fields none is noted.
func (m Resource) Compared(rec *v1alpha1.GateRecord) {
	was := m.Record
	rec.Object = m.objectNow(rec)

	if was != nil && !was.Creating &&
		(was.State == v1alpha1.GateClosed || !slices.Contains(was.Actions, management.ActionUpdate) || len(rec.Actions) > 0) {
		rec.Compared, rec.Differs = was.Compared, was.Differs

		return
	}

	rec.Compared, rec.Differs = "", nil

	if !management.Governed(m.Object) {
		return // [Trim] leaves nothing to compare.
	}

	path, _ := fieldpath.Parse(fieldForProvider)
	fields := map[string]bool{}

	eachShown(path, resource.Map(m.Object.Object, "spec", "forProvider"), resource.Map(m.Object.Object, "status", "atProvider"),
		func(path fieldpath.Path, _, _ any) { fields[upToList(path).String()] = true })

	if len(fields) == 0 || len(fields) > maxCompared {
		return // Nothing is known of it, or too much.
	}

	raw := make([]byte, 0, 2*len(fields))
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		raw = append(raw, hashOf(field)...)
	}

	rec.Compared = base64.StdEncoding.EncodeToString(raw)

	for _, c := range Differing(m.Object) {
		if rec.Differs = append(rec.Differs, c.Field); len(rec.Differs) > maxDiffers {
			rec.Differs = []string{fieldForProvider}

			return
		}
	}
}

// fieldForProvider is all that a provider makes of the external object.
const fieldForProvider = "spec.forProvider"

func hashOf(field string) []byte {
	sum := sha256.Sum256([]byte(field))

	return sum[:2]
}

// wasCompared reports whether a record says that a field was compared, or a list that it is in. Providers come to show
// more, as after an upgrade, which nobody has changed.
func wasCompared(rec *v1alpha1.GateRecord, path fieldpath.Path) bool {
	raw, err := base64.StdEncoding.DecodeString(rec.Compared)
	if err != nil {
		return false
	}

	want := hashOf(upToList(path).String())

	for i := 0; i+1 < len(raw); i += 2 {
		if raw[i] == want[0] && raw[i+1] == want[1] {
			return true
		}
	}

	return false
}

// wasEqual reports whether a record says that a field was compared, and did not differ.
func wasEqual(rec *v1alpha1.GateRecord, path fieldpath.Path) bool {
	return wasCompared(rec, path) && !anyAbout(rec.Differs, path)
}

// upToList is a path up to the first list in it: elements move there.
func upToList(path fieldpath.Path) fieldpath.Path {
	if i := slices.IndexFunc(path, func(s fieldpath.Segment) bool { return s.Type == fieldpath.SegmentIndex }); i >= 0 {
		return path[:i]
	}

	return path
}

// about reports whether a change of a field may be why another one differs: it is that one, above it, below it, or in the same list.
func about(field string, path fieldpath.Path) bool {
	if whole(field) || change.FieldCovers(field, path) {
		return true
	}

	other, err := fieldpath.Parse(field)

	return err == nil && change.FieldCovers(upToList(path).String(), other)
}

func anyAbout(fields []string, path fieldpath.Path) bool {
	return slices.ContainsFunc(fields, func(field string) bool { return about(field, path) })
}

// shown reports whether a provider shows anything of what the spec says.
func shown(u *unstructured.Unstructured) bool {
	some, _ := compare(resource.Map(u.Object, "spec", "forProvider"), resource.Map(u.Object, "status", "atProvider"))

	return some
}

// Drift returns the fields in which the external object of a managed resource differs from its spec, and did not when its gate
// closed, while that is not open for Update: from the external value to that of the spec, sorted by field. Fields with a change that
// waits for the gate are not among them, nor is anything of a resource that may never be updated.
func Drift(u *unstructured.Unstructured) []change.Change {
	if !shown(u) {
		return nil // As of most that [Trim] has trimmed.
	}

	rec, err := ParseRecord(u)
	if err != nil || rec == nil || Lost(u, rec) || ReplacedOutside(u, rec) || rec.Compared == "" || rec.Existed || resource.Deleting(u) ||
		rec.State != v1alpha1.GateClosed && (rec.State != v1alpha1.GateOpen || slices.Contains(rec.Actions, management.ActionUpdate)) {
		return nil
	}

	differs := slices.DeleteFunc(Differing(u), func(c change.Change) bool { return !wasEqual(rec, c.Path) })
	if desired, err := management.Desired(u); len(differs) == 0 || err != nil || !slices.Contains(desired, management.ActionUpdate) {
		return nil
	}

	// What is asked for and not applied is held, and no drift.
	withheld, err := wish.Withheld(u)
	stored, unread := allowance.ParseStored(u)

	if err != nil || unread != nil || withheld.Repairs("spec", "forProvider") || len(Resource{Object: u, Record: rec}.Replaced()) > 0 {
		return nil
	}

	asked, complete := changedSince(u, rec.Generation)
	if !complete {
		return nil
	}

	for _, e := range stored {
		asked = append(asked, e.Field)
	}

	return slices.DeleteFunc(differs, func(c change.Change) bool { return anyAbout(asked, c.Path) })
}

// changedSince are the fields that were changed since a generation, by the trace; false where that has no room for all.
func changedSince(u *unstructured.Unstructured, generation int64) (fields []string, complete bool) {
	entries, _ := allowance.ParseTrace(u) // What does not parse names nothing.

	for _, e := range entries {
		if e.Generation > generation {
			fields = append(fields, e.Field)
		}
	}

	return fields, len(fields) < v1alpha1.MaxTraceEntries
}

// DriftEntries are a managed resource's drift as held changes, which can be approved: all of them as one where they are many. Of
// some kinds there are none, see [gate.Options.WithoutDrift].
func DriftEntries(u *unstructured.Unstructured, without management.Kinds) []v1alpha1.HeldChange {
	if without.Has(u.GroupVersionKind().GroupKind()) {
		return nil
	}

	rec, err := ParseRecord(u)

	switch {
	case err == nil && Lost(u, rec):
		return []v1alpha1.HeldChange{lostEntry(u)}
	case err == nil && ReplacedOutside(u, rec):
		return []v1alpha1.HeldChange{anotherEntry(u)}
	}

	return entriesOf(u, Drift(u))
}

func entriesOf(u *unstructured.Unstructured, list []change.Change) []v1alpha1.HeldChange {
	if len(list) == 0 {
		return nil
	}

	// What is hidden outside is so by what stands beside it there.
	outside := map[string]any{"kind": u.GetKind()}
	_ = unstructured.SetNestedMap(outside, resource.Map(u.Object, "status", "atProvider"), "spec", "forProvider") // It copies.

	out, digests := make([]v1alpha1.HeldChange, len(list)), make([]string, len(list))

	for i, c := range list {
		from, to := mask.Value(c.Path, c.From, u.Object, outside), mask.Value(c.Path, c.To, u.Object, outside)
		hidden := mask.Hides(c.Path, c.From, u.Object, outside) || mask.Hides(c.Path, c.To, u.Object, outside)
		out[i] = driftEntry(c.Field, change.Text(from, maxDriftValue), change.Text(to, maxDriftValue), hidden, digest.Of(digest.Change{
			Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update, Masked: hidden,
			Elements: []any{"status", "atProvider", c.Field}, From: from, To: to, Follows: []string{management.ActionUpdate},
		}))
		digests[i] = out[i].Digest
	}

	if len(out) <= maxDiffers {
		return out
	}

	hidden := slices.ContainsFunc(out, func(e v1alpha1.HeldChange) bool { return e.Masked })

	return []v1alpha1.HeldChange{driftEntry(fieldForProvider, fmt.Sprintf("(%d fields)", len(out)), "", hidden, digest.OfList(digests))}
}

func driftEntry(field, from, to string, hidden bool, sum string) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Field: field, From: from, To: to, Masked: hidden, Digest: sum,
		Follows: []string{management.ActionUpdate}, Cause: &v1alpha1.Cause{Type: v1alpha1.CauseDrift},
		Missing: "the external object was changed outside Crossplane: revert it there, or approve to apply the spec",
	}
}

// maxDriftValue limits the bytes of a value.
const maxDriftValue = 128

// withholdDrift takes Update from what is pending of a resource whose external object has drifted, until that is reverted there
// or approved. What a window gives by itself reverts drift.
func (m Resource) withholdDrift(pending []v1alpha1.Allowance) []v1alpha1.Allowance {
	if !slices.Contains(ActionsOf(pending), management.ActionUpdate) || slices.ContainsFunc(pending, windowUpdates) ||
		len(m.unapproved(pending)) == 0 {
		return pending
	}

	return Without(pending, management.ActionUpdate)
}

func windowUpdates(a v1alpha1.Allowance) bool {
	return allowance.OfWindowAlone(a) && slices.Contains(management.Acting(a.Mutations), management.ActionUpdate)
}

// unapproved are the fields of the drift that no pending allowance is for.
func (m Resource) unapproved(pending []v1alpha1.Allowance) []string {
	if !m.LooksForDrift {
		return nil
	}

	approved, asked := map[string]bool{}, m.askedFields(pending)

	for _, a := range pending {
		approved[a.Digest] = a.Digest != ""
	}

	list := Drift(m.Object)
	entries := entriesOf(m.Object, list)

	var out []string

	for i, c := range list {
		entry := entries[0] // Of many, all are one.
		if len(entries) == len(list) {
			entry = entries[i]
		}

		if !approved[entry.Digest] && !anyAbout(asked, c.Path) {
			out = append(out, c.Field)
		}
	}

	return out
}

// reverts reports whether the gate is open for an approval of drift.
func reverts(rec *v1alpha1.GateRecord) bool {
	return slices.ContainsFunc(UnderWay(rec), allowance.OfApproval)
}

// revertShown is the first field in which the external object is shown to differ still, of those that did not when the gate
// closed last; empty for none.
func (m Resource) revertShown() string {
	for _, c := range Differing(m.Object) {
		if wasEqual(m.Record, c.Path) {
			return c.Field
		}
	}

	return ""
}

// Drifted says for a person why a gate stays closed because of drift; empty where it does not.
func (m Resource) Drifted(limits Limits, now time.Time) string {
	switch {
	case !m.LooksForDrift:
		return ""
	case Lost(m.Object, m.Record):
		return "closed: the external object is gone, and is recreated once that is approved"
	case ReplacedOutside(m.Object, m.Record):
		return "closed: the provider shows another external object, which is updated once that is approved"
	}

	asked := slices.DeleteFunc(slices.Clone(m.Allowances), func(a v1alpha1.Allowance) bool {
		return !allowance.External(a) || !slices.Contains(m.Remaining(limits, now, a), management.ActionUpdate)
	})

	if len(asked) == 0 {
		return ""
	}

	fields := m.unapproved(asked)
	if len(fields) == 0 {
		return ""
	}

	return fmt.Sprintf("closed: the external object was changed outside in %s, which the update would revert",
		strings.Join(fields[:min(len(fields), 3)], ", "))
}

// Applied reports whether a gate was open for an approval of drift, and is closed again.
func Applied(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	rec, err := ParseRecord(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateClosed && rec.Consumed >= a.Generation
}

// Applies reports whether a gate is open for one.
func Applies(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	rec, err := ParseRecord(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen &&
		slices.ContainsFunc(rec.Allowances, func(b v1alpha1.Allowance) bool { return b.Approval == a.Approval && b.Digest == a.Digest })
}

// driftShown is the first field in which the external system is shown to differ
// from the spec; empty for none. Where a window holds the gate open by itself that
// is waited for, and the gate settles then: what a provider wants besides is not
// to be seen.
func (m Resource) driftShown() string {
	if shown, _ := compare(resource.Map(m.Object.Object, "spec", "forProvider"), resource.Map(m.Object.Object, "status",
		"atProvider")); !shown {
		return ""
	}

	if differs := Differing(m.Object); len(differs) > 0 {
		return differs[0].Field
	}

	return ""
}
