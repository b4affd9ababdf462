// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// confirm reads from the API server what must not be of before: what the root remembers, what
// the PendingChange lists, and the ChangeApprovals of which something may come.
func (g *gathering) confirm(ctx context.Context) error {
	g.in.Confirmed = true

	if err := g.confirmRoot(ctx); err != nil {
		return err
	}

	pch := &v1alpha1.PendingChange{}

	err := g.Settler.Live.Get(ctx, client.ObjectKeyFromObject(g.pch), pch)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot get PendingChange %q of namespace %q: %w", g.pch.Name, g.pch.Namespace, err)
	}

	g.in.Listed = pch.Status.Changes

	var list []v1alpha1.ChangeApproval

	for i := range g.in.Approvals {
		cha := &g.in.Approvals[i]
		if done(cha) {
			list = append(list, *cha)

			continue
		}

		if list, err = g.confirmApproval(ctx, list, cha.Name, ""); err != nil {
			return err
		}
	}

	for _, p := range g.in.Parents {
		for _, a := range p.Allowances {
			if a.Approval == "" || has(list, a.Approval) {
				continue
			}

			if list, err = g.confirmApproval(ctx, list, a.Source.Name, a.Approval); err != nil {
				return err
			}
		}
	}

	g.in.Approvals = list

	return nil
}

// confirmRoot reads what the root remembers. Of one that is gone it is what it was.
func (g *gathering) confirmRoot(ctx context.Context) error {
	if g.root == nil {
		return nil
	}

	ref := g.pch.Spec.ObjectRef
	ref.APIVersion, ref.Kind, ref.UID = g.root.GetAPIVersion(), g.root.GetKind(), g.root.GetUID()
	ref.Namespace, ref.Name = g.root.GetNamespace(), g.root.GetName()

	u, err := g.Settler.Objects.Read(ctx, ref, true)
	if errors.Is(err, object.ErrGone) {
		return nil
	}

	if err == nil {
		g.in.Approved, err = allowance.ParseApproved(u)
	}

	if err != nil {
		return fmt.Errorf("cannot read %s %q: %w", ref.Kind, ref.Name, err)
	}

	return nil
}

// confirmApproval adds a ChangeApproval as it is now: one of a name, and of a UID unless that
// is empty.
func (g *gathering) confirmApproval(
	ctx context.Context, list []v1alpha1.ChangeApproval, name, uid string,
) ([]v1alpha1.ChangeApproval, error) {
	cha := &v1alpha1.ChangeApproval{}

	err := g.Settler.Live.Get(ctx, client.ObjectKey{Namespace: g.pch.Namespace, Name: name}, cha)

	switch {
	case apierrors.IsNotFound(err):
		return list, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get ChangeApproval %q of namespace %q: %w", name, g.pch.Namespace, err)
	case cha.Spec.PendingChange != g.pch.Name || uid != "" && string(cha.UID) != uid || cha.DeletionTimestamp != nil:
		return list, nil
	default:
		return append(list, *cha), nil
	}
}

func has(list []v1alpha1.ChangeApproval, uid string) bool {
	return slices.ContainsFunc(list, func(c v1alpha1.ChangeApproval) bool { return string(c.UID) == uid })
}

// done reports whether nothing comes of a ChangeApproval any more.
func done(cha *v1alpha1.ChangeApproval) bool {
	return len(cha.Status.Changes) == len(cha.Spec.Changes) &&
		!slices.ContainsFunc(cha.Status.Changes, func(d v1alpha1.ChangeDecision) bool { return !d.State.Final() })
}

// question is what Rights was asked.
type question struct {
	approver, object string
	decision         v1alpha1.ApprovalDecision
	destroys         bool
}

type answer struct {
	ok     bool
	reason string
	err    error
}

// asking asks each question once.
func (s *Settler) asking(ctx context.Context, namespace string) func(
	v1alpha1.Approver, v1alpha1.ApprovalDecision, v1alpha1.HeldChange) (bool, string, error) {
	known := map[question]answer{}

	return func(approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange) (bool, string, error) {
		who, err := json.Marshal(approver)
		what, err2 := json.Marshal(entry.Ref)

		if err := errors.Join(err, err2); err != nil {
			return false, "", fmt.Errorf("cannot encode a question: %w", err)
		}

		q := question{approver: string(who), object: string(what), decision: decision, destroys: entry.Destroys}

		a, asked := known[q]
		if !asked {
			a.ok, a.reason, a.err = s.Rights.MayDecide(ctx, approver, decision, entry, namespace)
			known[q] = a
		}

		return a.ok, a.reason, a.err
	}
}
