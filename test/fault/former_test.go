// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// former is what a former version has left on a managed resource, in the middle of a change.
const former = `{"spec": {"managementPolicies": ["Observe", "Update"]}, "metadata": {"annotations": {
	"kausality.io/allowances": "- relation: External\n  mutations:\n  - Update\n  generation: 99\n  initiator: hans\n  policy: shed-size\n",
	"kausality.io/gate": "state: Open\nactions:\n- Update\ngeneration: 99\nsince: \"2026-01-01T00:00:00Z\"\nallowances:\n- relation: External\n  mutations:\n  - Update\n  generation: 99\n  initiator: hans\n  policy: shed-size\n"
}}}`

// TestARecordOfAFormerVersionClosesItsGate until somebody has removed it: what it says stays, and nothing goes out.
func TestARecordOfAFormerVersionClosesItsGate(t *testing.T) {
	world.Long(t)

	impatient(t)
	ctx := t.Context()
	s := newShed(t, "attic")
	manager := world.Impersonate(t, running, "system:serviceaccount:"+stack.KausalityNamespace+":kausality-manager", "system:serviceaccounts")

	is := func(what string, check func(context.Context) error) {
		t.Helper()

		if err := scenario.Eventually(ctx, what, check); err != nil {
			t.Fatal(err)
		}
	}

	is("a shed", func(ctx context.Context) error { return s.settled(ctx, "small", false) })

	// 1. It is closed, however open it was.
	_, object, _, err := s.live(ctx)
	if err := errors.Join(err, manager.Patch(ctx, object, world.Merge(former))); err != nil {
		t.Fatal(err)
	}

	record := resource.Annotation(object, v1alpha1.AnnotationGate)
	closed := func(ctx context.Context) error {
		_, object, _, err := s.live(ctx)
		if err == nil && (slices.Contains(resource.Strings(object.Object, "spec", "managementPolicies"), "Update") ||
			resource.Annotation(object, v1alpha1.AnnotationGate) != record) {
			err = fmt.Errorf("%v, %v: %w", object.Object["spec"], object.GetAnnotations(), world.ErrOther)
		}

		return err
	}

	is("a closed gate", closed)

	// 2. It is guarded as before: nobody opens it by hand, and an edit of its XR goes no further.
	if err := s.hans.Patch(ctx, object.DeepCopy(), world.Merge(`{"spec": {"managementPolicies": ["*"]}}`)); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("the gate is opened by hand: %v", err)
	}

	if err := s.hans.Patch(ctx, s.xr.DeepCopy(), world.Merge(`{"spec": {"size": "large"}}`)); err != nil {
		t.Fatal(err)
	}

	is("a gate that is still closed", closed)

	// 3. Once both records are removed, what was asked for meanwhile arrives.
	remove := world.Merge(`{"metadata": {"annotations": {"kausality.io/gate": null, "kausality.io/allowances": null}}}`)
	if err := s.Patch(ctx, object, remove, client.FieldOwner("kubectl-annotate")); err != nil {
		t.Fatal(err)
	}

	is("a large shed", func(ctx context.Context) error { return s.settled(ctx, "large", false) })
}
