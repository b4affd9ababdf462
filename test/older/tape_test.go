// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package older_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/play"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// doctor returns what the doctor finds about a kind.
func doctor(ctx context.Context, object string) ([]play.Finding, error) {
	_, all, err := play.Shell{Stack: running}.Doctor(ctx)

	return slices.DeleteFunc(all, func(f play.Finding) bool { return f.Object != object }), err
}

func TestAKindThatIsNotNamedIsReportedOf(t *testing.T) {
	world.Long(t)

	t.Parallel()

	admin := define(t)
	tape := world.Prototype(managedKind("Tape"))
	tape.SetName("unnamed")

	xr := world.Prototype(kind("XTape"))
	xr.SetName(tape.GetName())
	xr.Object["spec"] = map[string]any{"size": int64(1)}

	hans := world.ConnectAs(t, running, "hans")
	world.Eventually(t, "an XR", func(ctx context.Context) error { return hans.Create(ctx, xr.DeepCopy()) })

	read := func(ctx context.Context, u *unstructured.Unstructured) error {
		return admin.Get(ctx, client.ObjectKeyFromObject(u), u)
	}

	// The external object is made, and the provider knows the closed gate.
	world.Eventually(t, "a closed gate", func(ctx context.Context) error {
		if err := read(ctx, tape); err != nil {
			return err
		}

		return errors.Join(closed(tape, "Observe"), synced(tape, "True"), isOutside(tape.GetName(), 1))
	})

	found, err := doctor(t.Context(), "Tape.old.example.org")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]play.Finding{{
		Check: "providers", Severity: "warning", Object: "Tape.old.example.org",
		What: "its provider sets no observedGeneration on condition Synced, so it was built on crossplane-runtime before 1.20",
		Why:  "when a change has landed can only be told from status.atProvider, and its gates may be open for longer",
		Remedy: "take a newer version of the provider; until then name the kind with the manager's --gate-without-late-initialize " +
			"and in the function's withoutLateInitialize",
	}}, found); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}

	// It does not support what the gate opens to: until the kind is named an allowed change stays inside.
	if err := hans.Patch(t.Context(), xr.DeepCopy(), world.Merge(`{"spec": {"size": 2}}`)); err != nil {
		t.Fatal(err)
	}

	waits := func(ctx context.Context) error {
		if err := read(ctx, tape); err != nil {
			return err
		}

		if got := resource.Strings(tape.Object, "spec", "managementPolicies"); !slices.Contains(got, "Update") {
			return fmt.Errorf("the gate has %v: %w", got, world.ErrOther)
		}

		return errors.Join(synced(tape, "False"), isOutside(tape.GetName(), 1))
	}

	world.Eventually(t, "an open gate that the provider does not support", waits)
	stays(t, "the gate", waits)

	if got, _ := resource.ConditionOf(tape, resource.ConditionSynced); !strings.Contains(got.Message, "not supported") {
		t.Errorf("condition Synced: %+v", got)
	}
}
