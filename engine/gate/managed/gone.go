// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Behind a closed gate a provider may only observe. That is when it says that the external object is gone: with any other action, and
// with LateInitialize too, it reports success, and with Update many a provider makes the external object anew.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/reconciler/managed/reconciler.go, errExternalResourceNotExist.
const textGone = "external resource does not exist"

// SaysGone reports whether a provider says of a managed resource that its external object does not exist.
func SaysGone(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	c, ok := resource.ConditionOf(u, resource.ConditionSynced)

	return ok && !c.True() && strings.Contains(c.Message, textGone) && rec != nil &&
		(c.ObservedGeneration == 0 || c.ObservedGeneration >= rec.Generation)
}

// Lost reports whether the external object of a managed resource was there, and is gone without its provider having deleted it.
func Lost(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	return SaysGone(u, rec) && rec.State == v1alpha1.GateClosed && !resource.Deleting(u) && (Made(u) || shown(u))
}

// objectOf stands for what the external system itself says which object it is; empty where it says nothing.
func objectOf(u *unstructured.Unstructured) string {
	unique := identity.Unique(u)
	if unique == "" {
		return ""
	}

	return fmt.Sprintf("%x", sha256.Sum256([]byte(unique)))[:16]
}

// objectNow is what a record that closes a gate says of that. Where it was open to have the object made, and its provider has made one,
// the provider shows that when it looks again: what another one made meanwhile is not that. Where it was not open to change it, what is
// shown is no news.
func (m Resource) objectNow(rec *v1alpha1.GateRecord) string {
	was := m.Record

	switch {
	case was == nil || was.Creating:
		return objectOf(m.Object)
	case slices.Contains(was.Actions, management.ActionCreate) && was.State == v1alpha1.GateOpen:
		return m.ObjectBefore()
	case was.State == v1alpha1.GateClosed || len(rec.Actions) > 0 || !slices.Contains(was.Actions, management.ActionUpdate):
		return cmp.Or(was.Object, objectOf(m.Object))
	default:
		return objectOf(m.Object)
	}
}

// ObjectBefore is what the record says of that as long as nothing is known of another one: where the gate is open to have one made, and
// its provider has done so, what was there before says nothing.
func (m Resource) ObjectBefore() string {
	was := m.Record
	if was.State == v1alpha1.GateOpen && slices.Contains(was.Actions, management.ActionCreate) && madeSince(m.Object, was.Since.Time) {
		return ""
	}

	return was.Object
}

// another reports whether a provider shows another object than the one that was there when the gate closed: it was made anew outside, or
// the ProviderConfig of the same name leads to another account.
func another(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	is := objectOf(u)

	return rec.Object != "" && is != "" && is != rec.Object
}

// ReplacedOutside reports so while the gate is closed.
func ReplacedOutside(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	return rec != nil && rec.State == v1alpha1.GateClosed && !resource.Deleting(u) && another(u, rec)
}

// withholdLost takes Update from what is pending of a resource whose external object is gone, where to update it would be to make it,
// which takes Create, or is another one, until that is approved. Nothing is withheld of kinds that drift is not looked for. Pending is
// not modified.
func (m Resource) withholdLost(pending []v1alpha1.Allowance) []v1alpha1.Allowance {
	actions := ActionsOf(pending)

	switch {
	case !slices.Contains(actions, management.ActionUpdate) || !m.LooksForDrift:
		return pending
	case Lost(m.Object, m.Record) && !slices.Contains(actions, management.ActionCreate):
		return Without(pending, management.ActionUpdate)
	case ReplacedOutside(m.Object, m.Record) && !approves(pending, anotherEntry(m.Object).Digest):
		return Without(pending, management.ActionUpdate)
	default:
		return pending
	}
}

// approves reports whether one of some allowances is an approval of a change.
func approves(list []v1alpha1.Allowance, sum string) bool {
	return slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool { return a.Digest == sum })
}

// AnotherObject is what a held change has in the place of a value where the provider shows another object.
const AnotherObject = "(another object)"

// anotherEntry is what a person approves to have another external object updated.
func anotherEntry(u *unstructured.Unstructured) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Field: fieldForProvider, From: AnotherObject, To: "(as asked)",
		Digest: digest.Of(digest.Change{
			Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update,
			Elements: []any{"status", "atProvider"}, From: objectOf(u), Follows: []string{management.ActionUpdate},
		}),
		Follows: []string{management.ActionUpdate}, Cause: &v1alpha1.Cause{Type: v1alpha1.CauseDrift},
		Missing: "the provider shows another external object than before: approve to update it",
	}
}

// lostEntry is what a person approves to have an external object that is gone made again.
func lostEntry(u *unstructured.Unstructured) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Field: fieldForProvider, From: "(gone)", To: "(recreated)",
		Digest: digest.Of(digest.Change{
			Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update,
			Elements: []any{"status", "atProvider"}, Follows: []string{management.ActionCreate},
		}),
		Follows: []string{management.ActionCreate}, Cause: &v1alpha1.Cause{Type: v1alpha1.CauseDrift},
		Missing: "the external object was deleted outside Crossplane: approve to recreate it, or delete the managed resource",
	}
}
