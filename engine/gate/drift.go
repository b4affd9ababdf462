// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// Drift is what somebody has changed of an external object since the gate last closed. One update makes all of an external object
// what the spec says: a gate that opens for an allowed change would revert the drift as well, and nobody allowed that.

// maxDiffers is how many fields a record names that differ when a gate closes.
const maxDiffers = 8

// compared notes in a record, which closes a gate, in which fields the external object differs then.
func (p *planner) compared(rec *v1alpha1.GateRecord) {
	if p.record != nil && p.record.State == v1alpha1.GateClosed {
		rec.Compared, rec.Differs = p.record.Compared, p.record.Differs

		return
	}

	rec.Compared, rec.Differs = false, nil

	if !Governed(p.u) {
		return // [Trim] leaves nothing to compare.
	}

	if !shown(p.u) {
		return // Nothing is known of it.
	}

	rec.Compared = true

	for _, c := range Differing(p.u) {
		if rec.Differs = append(rec.Differs, c.Field); len(rec.Differs) > maxDiffers {
			rec.Differs = []string{"spec.forProvider"}

			return
		}
	}
}

// shown reports whether a provider shows anything of what the spec says.
func shown(u *unstructured.Unstructured) bool {
	some, _ := compare(resource.Map(u.Object, "spec", "forProvider"), resource.Map(u.Object, "status", "atProvider"))

	return some
}

// Drift returns the fields in which the external object of a managed resource with a closed gate differs from its spec, and did
// not when the gate closed: from the external value to that of the spec, sorted by field. Fields with a change that waits for
// the gate are not among them.
func Drift(u *unstructured.Unstructured) []change.Change {
	rec, err := parseRecord(u)
	if err != nil || rec == nil || rec.State != v1alpha1.GateClosed || !rec.Compared || rec.Existed || resource.Deleting(u) || !shown(u) {
		return nil
	}

	// What is asked for and not applied is held, and no drift.
	withheld, err := wish.Withheld(u)
	if err != nil || withheld.Repairs("spec", "forProvider") || len((&view{u: u, record: rec}).replaced()) > 0 {
		return nil
	}

	entries, _ := allowance.ParseTrace(u) // What does not parse names nothing.

	return slices.DeleteFunc(Differing(u), func(c change.Change) bool {
		asked := slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool {
			return e.Generation > rec.Generation && (whole(e.Field) || change.FieldCovers(e.Field, c.Path))
		})
		differed := slices.ContainsFunc(rec.Differs, func(field string) bool { return change.FieldCovers(field, c.Path) })

		return asked || differed
	})
}

// DriftEntries are a managed resource's drift as held changes, which can be approved.
func DriftEntries(u *unstructured.Unstructured) []v1alpha1.HeldChange {
	list := Drift(u)
	out := make([]v1alpha1.HeldChange, len(list))

	for i, c := range list {
		from, to := mask.Value(c.Path, c.From, u.Object), mask.Value(c.Path, c.To, u.Object)
		hidden := mask.Hides(c.Path, c.From, u.Object) || mask.Hides(c.Path, c.To, u.Object)
		out[i] = v1alpha1.HeldChange{
			Field: c.Field, From: change.Text(from, maxDriftValue), To: change.Text(to, maxDriftValue), Masked: hidden,
			Follows: []string{ActionUpdate}, Cause: &v1alpha1.Cause{Type: v1alpha1.CauseDrift},
			Digest: digest.Of(digest.Change{
				Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update, Masked: hidden,
				Elements: []any{"status", "atProvider", c.Field}, From: from, To: to, Follows: []string{ActionUpdate},
			}),
			Missing: "the external object was changed outside of Crossplane: revert that there, or approve to have the spec applied",
		}
	}

	return out
}

// maxDriftValue limits the bytes of a value.
const maxDriftValue = 128

// withholdDrift takes Update from what is pending of a resource whose external object has drifted, until that is reverted there
// or approved. What a window gives by itself reverts drift.
func (s serving) withholdDrift(pending []v1alpha1.Allowance) []v1alpha1.Allowance {
	if s.opts.WithoutDrift.Has(s.u.GroupVersionKind().GroupKind()) || !slices.Contains(actionsOf(pending), ActionUpdate) ||
		slices.ContainsFunc(pending, allowance.OfWindowAlone) || len(s.unapproved(pending)) == 0 {
		return pending
	}

	return without(pending, ActionUpdate)
}

// unapproved are the fields of the drift that no pending allowance is for.
func (s serving) unapproved(pending []v1alpha1.Allowance) []string {
	approved := map[string]bool{}

	for _, a := range pending {
		approved[a.Digest] = a.Digest != ""
	}

	asked := s.askedFields(pending)

	var out []string

	for i, c := range Drift(s.u) {
		if e := DriftEntries(s.u)[i]; !approved[e.Digest] && !slices.ContainsFunc(asked, func(field string) bool {
			return whole(field) || change.FieldCovers(field, c.Path)
		}) {
			out = append(out, c.Field)
		}
	}

	return out
}

// drifted says for a person why a gate stays closed because of drift; empty where it does not.
func (p *planner) drifted() string {
	asked := slices.DeleteFunc(slices.Clone(p.allowances), func(a v1alpha1.Allowance) bool {
		return !allowance.External(a) || !slices.Contains(p.remaining(a), ActionUpdate)
	})

	fields := p.unapproved(asked)
	if len(asked) == 0 || len(fields) == 0 || p.opts.WithoutDrift.Has(p.u.GroupVersionKind().GroupKind()) {
		return ""
	}

	return fmt.Sprintf("closed: the external object was changed outside in %s, which the update would revert",
		strings.Join(fields[:min(len(fields), 3)], ", "))
}

// Applied reports whether a gate was open for an approval of drift, and is closed again.
func Applied(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	rec, err := parseRecord(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateClosed && rec.Consumed >= a.Generation
}

// Applies reports whether a gate is open for one.
func Applies(u *unstructured.Unstructured, a v1alpha1.Allowance) bool {
	rec, err := parseRecord(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateOpen &&
		slices.ContainsFunc(rec.Allowances, func(b v1alpha1.Allowance) bool { return b.Approval == a.Approval && b.Digest == a.Digest })
}

// remains names what the external object still shows of fields that an allowed change has removed; empty for nothing.
func (p *planner) remains() string {
	fields, _ := p.allowedFields(p.terms())

	for _, field := range fields {
		path, err := fieldpath.Parse(field)
		if err != nil || len(path) < 3 || path[0].Field != "spec" || path[1].Field != "forProvider" {
			continue
		}

		at := slices.Concat(fieldpath.Path{fieldpath.Field("status"), fieldpath.Field("atProvider")}, path[2:])
		_, wanted := path.In(p.u.Object)

		if v, there := at.In(p.u.Object); there && v != nil && !wanted {
			return field
		}
	}

	return ""
}
