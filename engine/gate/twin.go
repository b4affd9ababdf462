// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/identity"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Two managed resources may stand for one external object: while it moves to another composite resource, another kind, or into a
// namespace. The deletion of one would take it from the other. So no gate opens for Delete, nor for what nobody asked of this
// managed resource, while another one with a gate stands for the same, whichever of the two was there first.

// checkSharedAgain is after how long it is looked again whether another managed resource is gone. Nothing tells.
const checkSharedAgain = 10 * time.Second

// sharing knows which other managed resource stands for the same external object. It looks once it is asked.
type sharing struct {
	of       *unstructured.Unstructured
	identity identity.Fields
	// gated are those of [Options]; nil for none.
	gated func() ([]unstructured.Unstructured, error)

	looked bool
	twin   *unstructured.Unstructured
	// text says so, for a person; empty where there is none.
	text string
}

// anew is one that has not looked yet.
func (s *sharing) anew() *sharing { return &sharing{of: s.of, identity: s.identity, gated: s.gated} }

// is reports whether another one does, or may.
func (s *sharing) is() bool {
	if !s.looked {
		s.look()
	}

	return s.text != ""
}

// known reports whether it is known that there is one, or may be one, because that was asked.
func (s *sharing) known() bool { return s.looked && s.text != "" }

// twinned reports whether another one does.
func (s *sharing) twinned() bool { return s.is() && s.twin != nil }

func (s *sharing) look() {
	if s.looked = true; s.gated == nil {
		return
	}

	others, err := s.gated()
	if err != nil {
		s.text = "it is not known yet whether another managed resource represents the same external object"

		return
	}

	if s.twin = Twin(s.of, others, s.identity); s.twin != nil {
		s.text = Shared(s.of, s.twin)
	}
}

// note notes in a plan what keeps the gate closed.
func (s *sharing) note(plan *Plan) {
	if !s.known() {
		return
	}

	plan.Twin = s.twin
	if plan.Again == 0 || plan.Again > checkSharedAgain {
		plan.Again = checkSharedAgain
	}
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

		if other.GetKind() != u.GetKind() || itself(u, other) || !management.Governed(other) || !acts(other) || endsWithIt(other) {
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
	asked, err := management.Desired(u)

	return err != nil || len(management.Acting(asked)) > 0 && !managed.Orphaned(u)
}

// endsWithIt reports whether a managed resource is being deleted, and may be with its external object.
func endsWithIt(u *unstructured.Unstructured) bool {
	list, err := allowance.Parse(u)

	return err == nil && resource.Deleting(u) && allowance.GrantsDeletion(list)
}
