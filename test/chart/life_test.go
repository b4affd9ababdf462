// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package chart_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// life is that of a release.
type life struct {
	*world.World

	release *installed
	list    []*unstructured.Unstructured
}

// Two versions of the manager: the same sources, and another name.
const (
	older = "v1.0.0"
	newer = "v1.1.0"
)

// TestTheChartIsInstalledUpgradedRolledBackAndRemoved plays steps that build on
// each other, with gates open and allowances in flight.
func TestTheChartIsInstalledUpgradedRolledBackAndRemoved(t *testing.T) {
	err := running.BuildPrograms(t.Context())
	for _, version := range []string{older, newer} {
		err = errors.Join(err, running.BuildManager(t.Context(), version))
	}

	if err != nil {
		t.Fatal(err)
	}

	makeCertificate(t)

	l := &life{release: install(t, older, "kausality-manager-1")}
	l.release.runs(t, older)
	l.World = world.New(t, running)
	l.Namespace(t, "shop")

	l.gates(t)
	l.keepsDefinitions(t)

	another := l.Database(t, "shop", "another")

	applyCRDs(t)
	l.rolls(t, "large", newer, another, func() *installed { return install(t, newer, "kausality-manager-2") })
	l.rolls(t, "huge", older, another, func() *installed { return rollBack(t, "1", "kausality-manager-3") })

	l.rights(t)
	l.leaves(t)
}

// gates checks that what was installed gates: with the rights of the chart's
// role, called as the Deployment says.
func (l *life) gates(t *testing.T) {
	t.Helper()

	for i := range 4 {
		l.list = append(l.list, l.Database(t, "shop", fmt.Sprint("db-", i)))
	}

	// 1. What somebody may ask for passes.
	l.resizeAll(t, "medium", l.list)
	world.Eventually(t, "closed gates", l.Closed("medium", l.list...))
	world.Eventually(t, "a log of what was decided", l.logs)

	// 2. Nobody moves a gate by hand, once the API server has taken the guard into use.
	refused := func(ctx context.Context, opts ...client.PatchOption) error {
		err := l.Hans.Patch(ctx, l.list[0].DeepCopy(), world.Merge(`{"spec": {"managementPolicies": ["*"]}}`), opts...)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "only Kausality moves the gate") {
			return fmt.Errorf("a hand edit of the gate: %v: %w", err, world.ErrOther) //nolint:errorlint // It may be none.
		}

		return nil
	}

	world.Eventually(t, "a gate that nobody opens by hand", func(ctx context.Context) error { return refused(ctx, client.DryRunAll) })

	if err := refused(t.Context()); err != nil {
		t.Error(err)
	}
}

// logs reports whether what was asked for is in the log of decisions, which has the name of
// its pod.
func (l *life) logs(context.Context) error {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(l.release.log), "kausality-manager-1.log"))
	if err != nil || !strings.Contains(string(raw), `"kind":"Decision"`) || !strings.Contains(string(raw), `"size":"medium"`) {
		return fmt.Errorf("the log %q has %d bytes: %w", l.release.log, len(raw), errors.Join(err, world.ErrOther))
	}

	return nil
}

// keepsDefinitions checks that our CRDs stay while there is something of theirs.
func (l *life) keepsDefinitions(t *testing.T) {
	t.Helper()

	definition := func(plural string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("apiextensions.k8s.io/v1")
		u.SetKind("CustomResourceDefinition")
		u.SetName(plural + ".kausality.io")

		return u
	}

	// Dry runs: where one passed, nothing would be governed any more.
	world.Eventually(t, "a guard of our CRDs", func(ctx context.Context) error {
		err := l.Delete(ctx, definition("allowancepolicies"), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl kausality uninstall") {
			return fmt.Errorf("deleting the CRD of AllowancePolicies: %w", err)
		}

		return nil
	})

	if err := l.DeleteAllOf(t.Context(), definition(""), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("deleting all CRDs: %v", err)
	}

	if err := l.Delete(t.Context(), definition("enforcements"), client.DryRunAll); err != nil {
		t.Errorf("deleting a CRD of which there is nothing: %v", err)
	}
}

// rolls goes from one version to another, while gates are open for a size and more
// is asked for of another resource all the time.
func (l *life) rolls(t *testing.T, size, version string, another *unstructured.Unstructured, roll func() *installed) {
	t.Helper()

	// 1. Gates are open, and nobody applies anything.
	l.Rest(true)
	l.resizeAll(t, size, l.list)
	world.Eventually(t, "open gates", l.Open(l.list...))

	// 2. The new pod is ready before the old one goes.
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan int)

	go func() { asked <- l.ask(ctx, t, another) }()

	before := l.release
	l.release = roll()

	if err := before.process.Stop(); err != nil {
		t.Fatal(err)
	}

	if before.version == version {
		t.Errorf("%s was there before", version)
	}

	l.release.runs(t, version)

	// 3. Something that is not allowed, in the middle of it, is held.
	if err := l.Crossplane.Patch(t.Context(), l.list[0].DeepCopy(), world.Merge(`{"spec": {"forProvider": {"color": "for-`+size+`"}}}`)); err != nil {
		t.Error(err)
	}

	time.Sleep(time.Second) // It is asked a little longer, by the new one alone.
	cancel()

	n := <-asked

	// 4. Nothing was lost, and nothing passed that is not allowed.
	l.Rest(false)
	world.Eventually(t, "closed gates", l.Closed(size, l.list...))
	world.Eventually(t, "what was asked for last", l.Closed(fmt.Sprint("size-", n), another))

	for _, u := range slices.Concat(l.list, []*unstructured.Unstructured{another}) {
		_, live, err := l.Record(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}

		if got := resource.String(live.Object, "status", "atProvider", "color"); got != "" {
			t.Errorf("%s became %s", u.GetName(), got)
		}

		if got := resource.Annotation(live, v1alpha1.AnnotationTrace); !strings.Contains(got, "hans@example.com") {
			t.Errorf("the trace of %s is %q", u.GetName(), got)
		}
	}

	if n < 10 {
		t.Errorf("only %d changes were asked for meanwhile", n)
	}

	t.Logf("to %s: %d changes were asked for meanwhile, and none was refused", version, n)
}

// ask has hans change a size again and again, and returns how often.
func (l *life) ask(ctx context.Context, t *testing.T, u *unstructured.Unstructured) int {
	t.Helper()

	n := 0

	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		n++

		if err := l.Resize(context.WithoutCancel(ctx), u, fmt.Sprint("size-", n)); err != nil {
			t.Errorf("change %d: %v", n, err)
		}
	}

	return n
}

func (l *life) resizeAll(t *testing.T, size string, list []*unstructured.Unstructured) {
	t.Helper()

	for _, u := range list {
		if err := l.Resize(t.Context(), u, size); err != nil {
			t.Fatal(err)
		}
	}
}
