// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/upgradeallowance"
)

// pendingUse is a use that is managed.
type pendingUse struct {
	use upgradeallowance.Use
	// done ends that.
	done context.CancelFunc
}

// useKey distinguishes one request from all others.
type useKey struct {
	useWrite

	// wanted is the digest of what windows allow of an update: one that is refused
	// later, as it was about an older version, is followed by another one.
	wanted string
}

// useWrite distinguishes one write from all others: a version of an object has one next
// version, or one end, and a name is given once.
type useWrite struct {
	group, kind, namespace, name, uid string

	operation decision.Operation
	// version is the one that is updated.
	version string
}

// note has a request counted that windows allow, once it is stored.
func (u *Uses) note(ctx context.Context, req admission.Request, ask *decision.Request, d *decision.Decision) {
	if u == nil || req.DryRun != nil && *req.DryRun {
		return
	}

	u.seen(ask.Old)

	use, ok := upgradeallowance.UseOf(ask, d)
	if !ok {
		return
	}

	if objectOf(ask).GetName() == "" {
		// The API server makes up the name later, and nothing shows which it is.
		u.Count(use)

		return
	}

	ctx, done := context.WithCancel(context.WithoutCancel(ctx))
	key, pending := keyOfUse(ask), &pendingUse{use: use, done: done}

	if ask.Operation == decision.OperationUpdate {
		key.wanted = use.Digest()
	}

	if !u.expect(key, pending) {
		done()

		return // The API server asks once more about the same, or somebody tries again.
	}

	mine := *ask // Recording a deletion goes on with a newer old object.

	u.running.Go(func() {
		defer done()
		u.settle(key, pending, u.await(ctx, &mine, use))
	})
}

// expect has a use managed; false where it is already.
func (u *Uses) expect(key useKey, pending *pendingUse) bool {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.pending[key] != nil {
		return false
	}

	u.pending[key] = pending

	return true
}

// settle counts a use that is stored, if that was not seen before.
func (u *Uses) settle(key useKey, pending *pendingUse, stored bool) {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.pending[key] != pending {
		return
	}

	delete(u.pending, key)
	pending.done()

	if !stored {
		return
	}

	u.count(pending.use)

	// What else was asked for of the same version is not stored.
	for other, p := range u.pending {
		if other.useWrite == key.useWrite {
			delete(u.pending, other)
			p.done()
		}
	}
}

// seen counts the creation of an object that a later request is about: it may
// be gone before a watch for it begins.
func (u *Uses) seen(old *unstructured.Unstructured) {
	if old == nil {
		return
	}

	key := keyOfUse(&decision.Request{Operation: decision.OperationCreate, New: old})

	u.mu.Lock()
	pending := u.pending[key]
	u.mu.Unlock()

	if pending != nil && pending.use.Judge(old, false) == upgradeallowance.Stored {
		u.settle(key, pending, true)
	}
}

func keyOfUse(ask *decision.Request) useKey {
	s := objectOf(ask)
	out := useKey{useWrite: useWrite{
		group: s.GroupVersionKind().Group, kind: s.GetKind(), namespace: s.GetNamespace(), name: s.GetName(), operation: ask.Operation,
	}}

	if ask.Old != nil {
		out.uid = string(ask.Old.GetUID())
	}

	if ask.Operation == decision.OperationUpdate {
		out.version = ask.Old.GetResourceVersion()
	}

	return out
}
