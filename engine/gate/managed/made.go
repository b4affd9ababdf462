// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/fieldpath"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// A new managed resource may stand for an external object that exists already:
// it was made by hand, or its managed resource was deleted and made again. Its
// provider then has nothing to create, and an update would make of what exists
// what it is not allowed to make of it. So the first opening is for Create, and what
// an XR may do while it is built up comes to Update once the provider has
// recorded that it made the external object itself.

// Made reports whether a resource's provider has recorded that it made the external
// object, for this resource and not for one that it was copied from.
func Made(u *unstructured.Unstructured) bool {
	return madeSince(u, bornAt(u))
}

// bornAt is when a resource was made; the zero time where it does not say.
func bornAt(u *unstructured.Unstructured) time.Time {
	born, _ := time.Parse(time.RFC3339, resource.String(u.Object, "metadata", "creationTimestamp"))

	return born
}

// madeSince reports whether it has recorded so of an external object that it made since a time.
func madeSince(u *unstructured.Unstructured, since time.Time) bool {
	return saysSince(u, resource.AnnotationCreated, since)
}

// saysSince reports whether an annotation of a provider's is a time, and not before another one.
func saysSince(u *unstructured.Unstructured, key string, since time.Time) bool {
	at, err := time.Parse(time.RFC3339, resource.Annotation(u, key))

	return err == nil && !at.Before(since)
}

// tried reports whether a provider has made the external object, or has tried to.
func tried(u *unstructured.Unstructured) bool {
	return Made(u) || saysSince(u, annotationPending, bornAt(u))
}

// begun reports whether a resource's provider has begun to create the external object, and has not recorded what came of
// that. One that creates in the background may report Synced before.
//
// Source: github.com/crossplane/crossplane-runtime/v2 pkg/meta, ExternalCreateIncomplete, and
// github.com/crossplane/upjet/v2 pkg/controller, APICallbacks.
func begun(u *unstructured.Unstructured) bool {
	at := func(key string) time.Time {
		t, _ := time.Parse(time.RFC3339, resource.Annotation(u, key)) // The zero time where there is none.

		return t
	}

	pending := at(annotationPending)

	return pending.After(at(resource.AnnotationCreated)) && pending.After(at(annotationFailed))
}

// Annotations in which a provider records that it is about to create the external object, and that it failed to.
const (
	annotationPending = "crossplane.io/external-create-pending"
	annotationFailed  = "crossplane.io/external-create-failed"
)

// implicit reports whether an allowance is what an XR may do while it is built up:
// nobody allowed to change what was not made by that.
func implicit(a v1alpha1.Allowance) bool {
	return a.Source.Type == v1alpha1.SourceCreation
}

// unmade reports whether an action of an allowance is not to be served, because
// the provider has not made the external object, or has made it what the spec says.
func (m Resource) unmade(limits Limits, now time.Time, a v1alpha1.Allowance, action string) bool {
	switch {
	case !implicit(a):
		return false
	case Made(m.Object):
		lacks, _ := m.LacksUpdate(limits, now)

		return action == management.ActionUpdate && m.Creating() && !slices.Contains(m.Record.Actions, management.ActionUpdate) && !lacks
	default:
		return action == management.ActionUpdate || !m.fresh() && !m.Creating()
	}
}

// LacksUpdate reports whether the external object that the provider has made is not all that the spec says, as far as the
// provider shows it, or when to ask again. A provider shows nothing before it observes what it made.
func (m Resource) LacksUpdate(limits Limits, now time.Time) (lacks bool, again time.Duration) {
	want, have := resource.Map(m.Object.Object, "spec", "forProvider"), resource.Map(m.Object.Object, "status", "atProvider")

	if _, missing := m.synced(resource.Generation(m.Object)); missing != "" || m.whole() && !m.leaves() {
		return false, 0
	}

	if shown, _ := compare(want, have); shown || m.Ready() {
		return true, 0
	}

	left := max(0, m.Terms(limits).settle-now.Sub(m.steadySince()))

	return left == 0, left
}

// leaves reports whether the spec no longer has what the external object was made with, by the trace: what is not wanted
// is not to be missed in what the provider shows.
func (m Resource) leaves() bool {
	entries, _ := allowance.ParseTrace(m.Object) // What does not parse names nothing.

	return slices.ContainsFunc(entries, func(e v1alpha1.TraceEntry) bool {
		path, err := fieldpath.Parse(e.Field)
		if err != nil || !strings.HasPrefix(e.Field, "spec.forProvider.") || m.Record == nil || e.Generation <= m.Record.Generation {
			return false
		}

		_, there := path.In(m.Object.Object)

		return !there
	})
}

// fresh reports whether the resource is new, to be made, and was perhaps made paused.
func (m Resource) fresh() bool {
	return m.Record == nil && (len(m.Current) == 0 || slices.Contains(m.Current, management.ActionCreate))
}

// Creating reports whether the gate is open for the resource's first creation.
func (m Resource) Creating() bool {
	return m.Record != nil && m.Record.Creating
}

// Unknown reports whether the external object of a resource may have existed before
// it, which is not known yet.
func (m Resource) Unknown() bool {
	acting := m.Current
	if m.Record != nil {
		acting = m.Record.Actions
	}

	return (m.Record == nil || m.Creating()) && !slices.Contains(acting, management.ActionUpdate) && !Made(m.Object)
}

// Existing reports whether a record that is written now is of a resource whose
// external object existed, and was not made since what the spec says.
func (m Resource) Existing() bool {
	if m.Record == nil { // Its provider may not create it, or is content without.
		return m.Unknown() && (!slices.Contains(m.Current, management.ActionCreate) || m.Ready())
	}

	return m.Record.Existed
}

// Existed reports whether the external object of a resource whose gate is open for
// its first creation, or for its replacement, was there before: its provider may create it, did not, and
// is content.
func (m Resource) Existed(limits Limits, now time.Time) bool {
	if !m.creates() || begun(m.Object) ||
		slices.Contains(m.Record.Actions, management.ActionUpdate) || !slices.Contains(m.Record.Actions, management.ActionCreate) {
		return false
	}

	synced, missing := m.synced(m.Record.Generation)

	// Without a generation it may be from before the opening.
	return missing == "" && (synced.ObservedGeneration != 0 || now.Sub(m.Record.Since.Time) >= limits.Settle)
}

// creates reports whether the gate is open to have the external object made, which its provider has not done.
func (m Resource) creates() bool {
	if m.Creating() {
		return !Made(m.Object)
	}

	return m.Record != nil && m.Behind(m.Record.Actions) != nil && !madeSince(m.Object, m.Record.Since.Time)
}

// whole is what an allowance is for that is for all that differs.
func whole(field string) bool {
	return field == v1alpha1.MutationCreate || field == "spec" || field == "spec.forProvider"
}

// WithholdUpdate takes Update from what is pending of a resource whose external
// object existed, unless it is for all in which that differs: one update makes
// all of the spec.
func (m Resource) WithholdUpdate(pending []v1alpha1.Allowance) []v1alpha1.Allowance {
	pending = m.withholdLost(pending)

	if !m.Existing() && !m.Unknown() {
		return m.withholdDrift(pending)
	}

	asked := m.askedFields(pending)
	if slices.ContainsFunc(asked, whole) || covers(asked, Differing(m.Object)) {
		return pending
	}

	return Without(pending, management.ActionUpdate)
}

// askedFields are the fields that allowances with Update are for.
func (m Resource) askedFields(pending []v1alpha1.Allowance) []string {
	var asked []string

	entries, _ := allowance.ParseTrace(m.Object) // What does not parse names nothing.

	for _, a := range pending {
		if !slices.Contains(a.Mutations, management.ActionUpdate) {
			continue
		}

		if field := allowance.Field(a); field != "" {
			asked = append(append(asked, field), a.Source.Also...)
		}

		for _, e := range entries {
			if e.Generation == a.Generation {
				asked = append(asked, e.Field)
			}
		}
	}

	return asked
}

// covers reports whether fields are all that differs, or more.
func covers(asked []string, differing []change.Change) bool {
	return !slices.ContainsFunc(differing, func(c change.Change) bool {
		return !slices.ContainsFunc(asked, func(field string) bool { return change.FieldCovers(field, c.Path) })
	})
}

// Existing reports whether a managed resource stands for an external object that
// existed before it, and that was never made what its spec says.
func Existing(u *unstructured.Unstructured) bool {
	rec, err := ParseRecord(u)

	return err == nil && rec != nil && rec.Existed && rec.State != v1alpha1.GateUngated
}

// Ready reports whether the resource was ready at its present generation.
func (m Resource) Ready() bool {
	r, ok := resource.ConditionOf(m.Object, resource.ConditionReady)
	if !ok || !r.True() {
		return false
	}

	_, missing := m.synced(resource.Generation(m.Object))

	return missing == ""
}
