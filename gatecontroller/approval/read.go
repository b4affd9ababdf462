// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// read reads from the cache what a plan follows from, and returns the root and the parents by UID, too.
func (s *Settler) read(
	ctx context.Context, root *unstructured.Unstructured, pch *v1alpha1.PendingChange, status *v1alpha1.PendingChangeStatus,
) (approval.Input, map[types.UID]*unstructured.Unstructured, error) {
	in := approval.Input{
		Status: status, Made: pch.CreationTimestamp.Time, Previous: pch.Status.Approvals, Now: s.Now(),
		Cluster: &answers{
			settler: s, namespace: pch.Spec.ObjectRef.Namespace, known: map[question]answer{},
			seen: map[v1alpha1.ObjectReference]approval.Seen{},
		},
	}
	objects := map[types.UID]*unstructured.Unstructured{}

	// 1. ChangeApprovals, by the cache.
	list := &v1alpha1.ChangeApprovalList{}
	if err := s.Client.List(ctx, list, client.InNamespace(pch.Namespace), client.MatchingFields{IndexedField: pch.Name}); err != nil {
		return in, nil, fmt.Errorf("cannot list ChangeApprovals of namespace %q: %w", pch.Namespace, err)
	}

	in.Approvals = list.Items

	// 2. The root and the parents, by the cache.
	var (
		ref *v1alpha1.ObjectReference
		err error
	)

	if root != nil {
		ref = new(pending.RefTo(root))
		objects[ref.UID] = root

		if in.Approved, err = allowance.ParseApproved(root); err != nil {
			return in, nil, fmt.Errorf("cannot read %s %q: %w", root.GetKind(), root.GetName(), err)
		}
	}

	for _, ref := range approval.ParentRefs(ref, in) {
		if in.Parents, err = s.addParent(ctx, in.Parents, ref, objects); err != nil {
			return in, nil, err
		}
	}

	return in, objects, nil
}

// addParent reads one parent. One that may not be read is left out.
func (s *Settler) addParent(
	ctx context.Context, parents []approval.Parent, ref v1alpha1.ObjectReference, objects map[types.UID]*unstructured.Unstructured,
) ([]approval.Parent, error) {
	if objects[ref.UID] == nil {
		u, err := s.Objects.Read(ctx, ref, false)

		switch {
		case errors.Is(err, object.ErrGone):
			return append(parents, approval.Parent{Ref: ref, Gone: true}), nil
		case apierrors.IsForbidden(err):
			log.FromContext(ctx).Info("Cannot read a parent of what is held", "kind", ref.Kind, "object", ref.Name)

			return parents, nil
		case err != nil:
			return nil, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
		}

		objects[ref.UID] = u
	}

	p, err := approval.ParentOf(ref, objects[ref.UID])

	return append(parents, p), err
}

// readLive confirms an input: it reads from the API server the memory of the root, the list of the PendingChange, and the
// ChangeApprovals of which something may come. The parents were read before: what gave an allowance, or took it away, is known by
// now. A root that is gone remembers what it did.
func (s *Settler) readLive(
	ctx context.Context, in approval.Input, root *unstructured.Unstructured, pch *v1alpha1.PendingChange,
) (approval.Input, error) {
	// 1. The memory of the root.
	if root != nil {
		u, err := s.live(ctx, root)
		if err != nil {
			return in, err
		}

		if u != nil {
			if in.Approved, err = allowance.ParseApproved(u); err != nil {
				return in, fmt.Errorf("cannot read %s %q: %w", root.GetKind(), root.GetName(), err)
			}
		}
	}

	// 2. The list of the PendingChange.
	now := &v1alpha1.PendingChange{}

	err := s.Live.Get(ctx, client.ObjectKeyFromObject(pch), now)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("cannot get PendingChange %q of namespace %q: %w", pch.Name, pch.Namespace, err)
	}

	in.Listed = now.Status.Changes

	// 3. ChangeApprovals: those that are not final, and those of allowances.
	in.Approvals, err = s.liveApprovals(ctx, in, pch)
	in.Confirmed = true

	return in, err
}

// liveApprovals are the ChangeApprovals of an input as they are now, and those of the allowances of its parents, each once.
func (s *Settler) liveApprovals(ctx context.Context, in approval.Input, pch *v1alpha1.PendingChange) ([]v1alpha1.ChangeApproval, error) {
	var (
		out []v1alpha1.ChangeApproval
		err error
	)

	known := map[string]bool{"": true}

	for _, cha := range in.Approvals {
		if approval.Final(&cha) {
			out = append(out, cha)
		} else if out, err = s.addApproval(ctx, out, pch, cha.Name, ""); err != nil {
			return nil, err
		}
	}

	for i := range out {
		known[string(out[i].UID)] = true
	}

	for _, p := range in.Parents {
		for _, a := range p.Allowances {
			if known[a.Approval] {
				continue
			}

			known[a.Approval] = true

			if out, err = s.addApproval(ctx, out, pch, a.Source.Name, a.Approval); err != nil {
				return nil, err
			}
		}
	}

	return out, nil
}

// addApproval adds a ChangeApproval of a PendingChange as it is now: one of a name, and of a UID unless that is empty.
func (s *Settler) addApproval(
	ctx context.Context, list []v1alpha1.ChangeApproval, pch *v1alpha1.PendingChange, name, uid string,
) ([]v1alpha1.ChangeApproval, error) {
	cha := &v1alpha1.ChangeApproval{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: pch.Namespace, Name: name}, cha)

	switch {
	case apierrors.IsNotFound(err):
		return list, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get ChangeApproval %q of namespace %q: %w", name, pch.Namespace, err)
	case cha.Spec.PendingChange != pch.Name || uid != "" && string(cha.UID) != uid:
		return list, nil
	default:
		return append(list, *cha), nil
	}
}
