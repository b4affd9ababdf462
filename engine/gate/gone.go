// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/digest"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Behind a closed gate a provider may only observe. That is when it says that the external object is gone: with any other action, and
// with LateInitialize too, it reports success, and with Update many a provider makes the external object anew.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0, pkg/reconciler/managed/reconciler.go, errExternalResourceNotExist.
const textGone = "external resource does not exist"

// shutSet is the set of a closed gate. Of what is being deleted LateInitialize stays: a provider that may only observe does not
// let go of what is gone.
func (v *view) shutSet() []string {
	if resource.Deleting(v.u) {
		return Closed(v.desired, v.opts.LateInitialize)
	}

	return []string{ActionObserve}
}

// isShut reports whether a set that is in force is that of a closed gate, of this version or of a former one.
func (v *view) isShut() bool {
	return Same(v.current, []string{ActionObserve}) || Same(v.current, Closed(v.desired, v.opts.LateInitialize))
}

// saysGone reports whether a provider says of a managed resource that its external object does not exist.
func saysGone(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	c, ok := resource.ConditionOf(u, resource.ConditionSynced)

	return ok && !c.True() && strings.Contains(c.Message, textGone) && rec != nil &&
		(c.ObservedGeneration == 0 || c.ObservedGeneration >= rec.Generation)
}

// lost reports whether the external object of a managed resource was there, and is gone without its provider having deleted it.
func lost(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) bool {
	return saysGone(u, rec) && rec.State == v1alpha1.GateClosed && !resource.Deleting(u) && (made(u) || shown(u))
}

// lost reports so of a kind of which drift is looked for.
func (v *view) lost() bool {
	return !v.opts.WithoutDrift.Has(v.u.GroupVersionKind().GroupKind()) && lost(v.u, v.record)
}

// withholdLost takes Update from what is pending of a resource whose external object is gone: to update it would be to make it, which
// takes Create.
func (s serving) withholdLost(pending []v1alpha1.Allowance) []v1alpha1.Allowance {
	actions := actionsOf(pending)
	if !slices.Contains(actions, ActionUpdate) || slices.Contains(actions, ActionCreate) || !s.lost() {
		return pending
	}

	return without(pending, ActionUpdate)
}

// lostEntry is what a person approves to have an external object that is gone made again.
func lostEntry(u *unstructured.Unstructured) v1alpha1.HeldChange {
	return v1alpha1.HeldChange{
		Field: fieldForProvider, From: "(gone)", To: "(made again)",
		Digest: digest.Of(digest.Change{
			Kind: u.GroupVersionKind().GroupKind(), UID: u.GetUID(), Operation: digest.Update,
			Elements: []any{"status", "atProvider"}, Follows: []string{ActionCreate},
		}),
		Follows: []string{ActionCreate}, Cause: &v1alpha1.Cause{Type: v1alpha1.CauseDrift},
		Missing: "the external object was deleted outside of Crossplane: approve to have it made again, or delete the managed resource",
	}
}
