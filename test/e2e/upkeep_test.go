// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestAParentThatNobodyWritesToAnyMoreIsKeptUp has a parent come to rest while
// the manager is away, which it does not learn of by a request. It does not run
// beside other tests, for which the manager would be away too.
func TestAParentThatNobodyWritesToAnyMoreIsKeptUp(t *testing.T) {
	world.Long(t)

	l := newLab(t, "lab-at-rest", "none")
	ctx := t.Context()

	kept := func(allows bool) check {
		return func(ctx context.Context) error {
			live := l.plan.DeepCopy()
			if err := l.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return err
			}

			list, err := allowance.Parse(live)
			if got := fixture.Initialized(live); err != nil || !got || allows != (len(list) > 0) {
				return fmt.Errorf("initialized %t, %d allowances (%w)", got, len(list), errors.Join(err, world.ErrOther))
			}

			return nil
		}
	}

	// That it was ready once the manager finds out.
	forget := world.Merge(`{"metadata": {"annotations": {"` + v1alpha1.AnnotationInitialized + `": null}}}`)
	if err := asManager(t).Patch(ctx, l.plan.DeepCopy(), forget); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "an initialized parent", kept(false)); err != nil {
		t.Fatal(err)
	}

	l.ask(t, "large")

	if err := still(ctx, kept(true)); err != nil {
		t.Fatal(err)
	}

	manager := running.Process("kausality-manager")
	if err := manager.Kill(); err != nil {
		t.Fatal(err)
	}

	// Its controller finishes, and that is the last that is heard of it.
	if err := l.Status().Patch(ctx, l.plan.DeepCopy(), world.Merge(`{"status": {"observedGeneration": 2}}`)); err != nil {
		t.Fatal(err)
	}

	if err := manager.Restart(ctx); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "the end of what it allowed", kept(false)); err != nil {
		t.Error(err)
	}
}
