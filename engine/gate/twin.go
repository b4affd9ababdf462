// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Two managed resources may stand for one external object: while it moves to another composite resource, another kind, or into a
// namespace. The deletion of one would take it from the other. So no gate opens for Delete, nor for what nobody asked of this
// managed resource, while another one with a gate stands for the same, whichever of the two was there first.

// checkSharedAgain is after how long it is looked again whether another managed resource is gone. Nothing tells.
const checkSharedAgain = 10 * time.Second

// sharing is what is known of others that stand for the same external object.
type sharing struct {
	twin *unstructured.Unstructured
	// text says so, for a person; empty where there is none.
	text string
}

func (s *sharing) is() bool { return s.text != "" }

// sharing reports whether another managed resource stands for the same external object, or that is not known yet.
func (v *view) sharing() bool {
	if v.shared == nil {
		v.shared = v.look()
	}

	return v.shared.is()
}

// twinned reports whether another one is known to. As long as that is not known nothing opens, and what is open stays: a provider
// that may no longer delete what is being deleted leaves it behind.
func (v *view) twinned() bool { return v.sharing() && v.shared.twin != nil }

func (v *view) look() *sharing {
	if v.opts.Gated == nil {
		return &sharing{}
	}

	others, err := v.opts.Gated()
	if err != nil {
		return &sharing{text: "it is not known yet whether another managed resource represents the same external object"}
	}

	twin := Twin(v.u, others, v.opts.Identity)
	if twin == nil {
		return &sharing{}
	}

	return &sharing{twin: twin, text: Shared(v.u, twin)}
}

// Shared says to whom looks at a managed resource that another one stands for the same external object.
func Shared(u, twin *unstructured.Unstructured) string {
	return fmt.Sprintf("%s represents the same external object. To delete this one and keep that object: "+
		"kubectl kausality release %s --orphan",
		resource.Argument(twin), resource.Argument(u))
}

// Twin is the first of some managed resources that has a gate, and stands for the same external object as another one; nil for none.
// One that only observes it, or leaves it behind, does not count, nor does one that is being deleted with it.
func Twin(u *unstructured.Unstructured, others []unstructured.Unstructured, more identity.Fields) *unstructured.Unstructured {
	for i := range others {
		other := &others[i]

		if other.GetKind() != u.GetKind() || itself(u, other) || !Governed(other) || !acts(other) || endsWithIt(other) {
			continue
		}

		if identity.Same(u, other, more) {
			return other
		}
	}

	return nil
}

func itself(a, b *unstructured.Unstructured) bool {
	return a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace() &&
		a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind()
}

// acts reports whether what a managed resource's Composition asks for is more than to observe.
func acts(u *unstructured.Unstructured) bool {
	asked, err := Desired(u)

	return err != nil || len(Acting(asked)) > 0 && !orphaned(u)
}

// endsWithIt reports whether a managed resource is being deleted, and may be with its external object.
func endsWithIt(u *unstructured.Unstructured) bool {
	list, err := allowance.Parse(u)

	return err == nil && resource.Deleting(u) && allowance.GrantsDeletion(list)
}

// asksToDelete reports whether a deletion of the managed resource with its external object is allowed.
func (v *view) asksToDelete() bool { return allowance.GrantsDeletion(v.allowances) }

// noteSharing has a plan say what keeps a gate closed, and when to look again.
func (v *view) noteSharing(plan *Plan) {
	if v.shared == nil || !v.shared.is() {
		return
	}

	plan.Twin = v.shared.twin
	if plan.Again == 0 || plan.Again > checkSharedAgain {
		plan.Again = checkSharedAgain
	}
}
