// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// reporting is a tenant of whom something may be reported.
type reporting struct {
	*tenant

	// definitions are the CRDs of OpenReports.
	definitions []*unstructured.Unstructured
}

// openReports are the CRDs of OpenReports, of the version that go.mod pins.
func openReports(t *testing.T) []*unstructured.Unstructured {
	t.Helper()

	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	if err != nil {
		t.Fatal(err)
	}

	out := make([]*unstructured.Unstructured, 0, 2)

	for _, file := range []string{"openreports.io_reports.yaml", "openreports.io_clusterreports.yaml"} {
		raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", file))
		if err != nil {
			t.Fatal(err)
		}

		out = append(out, world.Parse(t, raw)...)
	}

	return out
}

// install makes the CRDs.
func (r reporting) install(ctx context.Context) error {
	errs := make([]error, 0, len(r.definitions))
	for _, crd := range r.definitions {
		errs = append(errs, r.Create(ctx, crd.DeepCopy()))
	}

	return errors.Join(errs...)
}

// uninstall deletes them.
func (r reporting) uninstall(ctx context.Context) error {
	errs := make([]error, 0, len(r.definitions))
	for _, crd := range r.definitions {
		errs = append(errs, client.IgnoreNotFound(r.Delete(ctx, crd.DeepCopy())))
	}

	return errors.Join(errs...)
}

// report reads the Report of the namespace.
func (r reporting) report(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "openreports.io", Version: "v1alpha1", Kind: openreport.KindReport})

	return u, r.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "kausality"}, u)
}

// tells checks which policies the Report has results of, about the store or its XR.
func (r reporting) tells(policies ...string) check {
	return func(ctx context.Context) error {
		u, err := r.report(ctx)
		if err != nil {
			return err
		}

		var got []string

		results, _, _ := unstructured.NestedSlice(u.Object, "results")
		for _, result := range results {
			m, _ := result.(map[string]any)
			got = append(got, fmt.Sprint(m["policy"]))
		}

		slices.Sort(got)

		if !slices.Equal(got, policies) {
			return fmt.Errorf("the Report of %q has %q, want %q: %w", r.namespace, got, policies, world.ErrOther)
		}

		return nil
	}
}

// unreported checks that the namespace has no Report.
func (r reporting) unreported(ctx context.Context) error {
	switch _, err := r.report(ctx); {
	case err == nil:
		return fmt.Errorf("%q has a Report: %w", r.namespace, world.ErrOther)
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil
	default:
		return err
	}
}

// unwritten checks that nobody writes the Report for five times as long as the manager
// takes to look.
func (r reporting) unwritten(ctx context.Context) error {
	before, err := r.report(ctx)
	if err != nil {
		return err
	}

	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		now, err := r.report(ctx)
		if err != nil {
			return err
		}

		if now.GetResourceVersion() != before.GetResourceVersion() {
			return fmt.Errorf("the Report of %q is written though nothing changes: %w", r.namespace, world.ErrOther)
		}
	}

	return nil
}

// resize has a user ask for a size of the store.
func (r reporting) resize(ctx context.Context, user, size string) error {
	return r.apply(ctx, user, strings.ReplaceAll(storeOf(r.name, r.name, size), "namespace: default", "namespace: "+r.name))
}

func TestReportsTellWhatWaitsUntilItDoesNot(t *testing.T) { //nolint:tparallel // Steps build on each other.
	t.Parallel()

	r := reporting{tenant: newTenant(t, "reported"), definitions: openReports(t)}

	t.Cleanup(func() {
		if err := r.uninstall(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})

	r.play(t, []scenario.Step{
		r.made(),
		{Title: "What anna may not change is stored, and held", Run: func(ctx context.Context) error {
			if err := r.resize(ctx, anna, "huge"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a held size", all(r.edited("anna@example.com"), r.says("small → huge"), r.unreported))
		}},
		{Title: "Once OpenReports is installed it is reported", Run: func(ctx context.Context) error {
			if err := r.install(ctx); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a Report", r.tells("held", "stored-not-allowed"))
		}},
		{Title: "Nothing is written while nothing changes", Run: r.unwritten},
		{Title: "What hans changes instead is let through, and reported no more", Run: func(ctx context.Context) error {
			if err := r.resize(ctx, hans, "large"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "no Report", all(r.edited(), r.settled, r.unreported))
		}},
		{Title: "Without OpenReports the manager goes on as before", Run: func(ctx context.Context) error {
			if err := r.uninstall(ctx); err != nil {
				return err
			}

			if err := r.resize(ctx, anna, "small"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a held size", all(r.says("large → small"), r.unreported))
		}},
	})
}

// edited checks who edited the composite resource without being allowed to.
func (c cluster) edited(users ...string) check {
	return func(ctx context.Context) error {
		u, err := c.xr(ctx)
		if err != nil {
			return err
		}

		edits, err := allowance.ParseStored(u)
		if err != nil {
			return err
		}

		if len(edits) != len(users) {
			return fmt.Errorf("%q has edits %+v, want of %q: %w", c.name, edits, users, world.ErrOther)
		}

		for i, e := range edits {
			if allowance.Author(e) != users[i] || e.Field != "spec.size" || e.From != "small" {
				return fmt.Errorf("%q has edit %+v, want of %q: %w", c.name, e, users[i], world.ErrOther)
			}
		}

		return nil
	}
}
