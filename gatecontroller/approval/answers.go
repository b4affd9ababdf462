// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/approval"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
)

// answers are those to the questions of one plan.
type answers struct {
	settler *Settler
	// namespace of the object that people edit.
	namespace string
	// known caches who may decide.
	known map[question]answer
	// seen caches objects: the plan of a confirmed input is by the same ones as that before.
	seen map[v1alpha1.ObjectReference]approval.Seen
}

var _ approval.Cluster = &answers{}

// question is what Rights was asked.
type question struct {
	approver string
	object   v1alpha1.ObjectReference
	decision v1alpha1.ApprovalDecision
	destroys bool
}

type answer struct {
	ok     bool
	reason string
	err    error
}

// MayDecide implements approval.Cluster, and asks each question once.
func (a *answers) MayDecide(
	ctx context.Context, approver v1alpha1.Approver, decision v1alpha1.ApprovalDecision, entry v1alpha1.HeldChange,
) (bool, string, error) {
	who, err := json.Marshal(approver)
	if err != nil {
		return false, "", fmt.Errorf("cannot encode a question: %w", err)
	}

	q := question{approver: string(who), object: entry.Ref, decision: decision, destroys: entry.Destroys}

	got, asked := a.known[q]
	if !asked {
		got.ok, got.reason, got.err = a.settler.Rights.MayDecide(ctx, approver, decision, entry, a.namespace)
		a.known[q] = got
	}

	return got.ok, got.reason, got.err
}

// Object implements approval.Cluster. The error is about what is to be tried again once the cache shows more.
func (a *answers) Object(ctx context.Context, ref v1alpha1.ObjectReference) (approval.Seen, error) {
	seen, ok := a.seen[ref]
	if ok {
		return seen, nil
	}

	seen, err := a.read(ctx, ref)
	if err == nil {
		a.seen[ref] = seen
	}

	return seen, err
}

// read reads an object from the API server.
func (a *answers) read(ctx context.Context, ref v1alpha1.ObjectReference) (approval.Seen, error) {
	u, err := a.settler.Objects.Read(ctx, ref, true)

	switch {
	case errors.Is(err, object.ErrGone):
		return approval.Seen{}, nil
	case apierrors.IsForbidden(err):
		return approval.Seen{Hidden: true}, nil
	case object.Outdated(err):
		return approval.Seen{}, fmt.Errorf("cannot get %s %q: %w", ref.Kind, ref.Name, err)
	case err != nil:
		log.FromContext(ctx).Info("Cannot see what is approved", "kind", ref.Kind, "object", ref.Name, "cause", err.Error())

		return approval.Seen{Unknown: true}, nil
	default:
		return approval.Seen{Object: u}, nil
	}
}
