// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Held are the changes that are held of some objects, and that happen once nobody holds them: what the webhook wrote down on each,
// deletions of gated managed resources that the function last listed, and drift, which an open gate reverts. Those that destroy
// something come first.
func Held(objects []*unstructured.Unstructured) []v1alpha1.HeldChange {
	type place struct {
		uid   types.UID
		field string
	}

	var out []v1alpha1.HeldChange

	gated, seen := map[types.UID]bool{}, map[place]bool{}

	add := func(e v1alpha1.HeldChange) {
		if _, more := allowance.MoreHeld(e); more || seen[place{e.Ref.UID, e.Field}] {
			return
		}

		seen[place{e.Ref.UID, e.Field}] = true
		out = append(out, e)
	}

	for _, u := range objects {
		gated[u.GetUID()] = management.Governed(u) && !managed.Ungated(u)
	}

	for _, u := range objects {
		for _, e := range heldOn(u) {
			add(e)
		}
	}

	for _, u := range objects {
		list, known := resource.StateOf(u)
		if !known {
			continue
		}

		for _, e := range list.Changes {
			// All else happened when the function went, or is held at the door of its gate since.
			if gated[e.Ref.UID] && e.Field == v1alpha1.MutationDelete {
				add(e)
			}
		}
	}

	slices.SortFunc(out, pending.Compare)

	return out
}

// heldOn are the changes that an object itself names, and its drift.
func heldOn(u *unstructured.Unstructured) []v1alpha1.HeldChange {
	held, _ := allowance.ParseHeld(u) // What does not parse names nothing.

	// Where nobody has changed the spec since the gate closed, what differs was changed outside.
	rec, err := allowance.ParseGate(u)
	if err == nil && rec != nil && !managed.Ungated(u) && rec.Generation == resource.Generation(u) {
		held = append(held, managed.DriftEntries(u, nil)...)
	}

	for i := range held {
		held[i].Ref = pending.RefTo(u)
		held[i].Destroys = held[i].Destroys || resource.Destroys(u, held[i].Field)
	}

	return held
}

// Describe says what one of them would do.
func Describe(e v1alpha1.HeldChange) string {
	object := e.Ref.Kind + " " + e.Ref.Name
	if e.Ref.Namespace != "" {
		object = e.Ref.Kind + " " + e.Ref.Namespace + "/" + e.Ref.Name
	}

	switch {
	case e.Field == v1alpha1.MutationDelete:
		return object + ": it is deleted, with its external object"
	case e.Destroys:
		return object + ": " + decision.DescribePassed(e) + ", which destroys something"
	default:
		return object + ": " + decision.DescribePassed(e)
	}
}
