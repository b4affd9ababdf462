// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/kind"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/watch"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// lister lists kinds: with an error, or with an object that waits for us, or
// empty.
type lister struct {
	client.Reader

	errs    map[string]error
	waiting map[string]bool
	calls   map[string]int
}

func (l *lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	name := list.GetObjectKind().GroupVersionKind().Kind
	l.calls[name]++

	if m, ok := list.(*metav1.PartialObjectMetadataList); ok && l.waiting[name] {
		m.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.Finalizer}}}}
	}

	return l.errs[name]
}

// adopting is a configuration that looks kinds through at a time, and cannot
// watch any: it has ended.
func adopting(l *lister, now *time.Time) *Adoption {
	w := watch.NewWatches(nil, func() time.Time { return *now })
	w.Cancel()
	l.calls = map[string]int{}

	return &Adoption{Watches: w, Live: l}
}

func TestAKindThatCannotBeListedIsSearchedAgain(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &lister{errs: map[string]error{"Yard": fixture.ErrUnavailable}}
	c := adopting(l, &now)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", fixture.ErrUnavailable)

	for i, step := range []struct {
		reason string
		after  time.Duration
		errs   map[string]error
		want   map[string]int
		all    bool
	}{
		{"What fails is not nothing.", 0, map[string]error{"Yard": fixture.ErrUnavailable}, map[string]int{"ConfigMap": 1, "Yard": 1}, false},
		{"It alone is tried again.", time.Second, map[string]error{"Yard": fixture.ErrUnavailable}, map[string]int{"Yard": 1}, false},
		{"Until it can be listed.", time.Second, nil, map[string]int{"Yard": 1}, true},
		{"Then all are known.", time.Second, nil, map[string]int{}, true},
		{"For a while.", adoptEvery, nil, map[string]int{"ConfigMap": 1, "Yard": 1}, true},
		{"What may not be listed is tried as seldom as all.", adoptEvery, map[string]error{"ConfigMap": forbidden}, map[string]int{"ConfigMap": 1, "Yard": 1}, true},
	} {
		now = now.Add(step.after)
		l.errs, l.calls = step.errs, map[string]int{}

		all, err := c.Adopt(t.Context(), fixture.BuiltInAndCustom())
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(step.want, l.calls); all != step.all || diff != "" {
			t.Errorf("step %d: %s\nall: %t, lists: -want, +got:\n%s", i, step.reason, all, diff)
		}
	}
}

func TestBuiltInKindsAreTakenOverTooAndLater(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &lister{}
	c := adopting(l, &now)

	if all, err := c.Adopt(t.Context(), fixture.BuiltInAndCustom()); err != nil || !all {
		t.Fatalf("nothing waits: %t, %v", all, err)
	}

	// Restored from a backup.
	l.waiting = map[string]bool{"ConfigMap": true}
	now = now.Add(adoptEvery)

	if _, err := c.Adopt(t.Context(), fixture.BuiltInAndCustom()); !errors.Is(err, watch.ErrEnded) || !c.Watches.IsOwner(fixture.BuiltInAndCustom()[0].GVK) {
		t.Errorf("a ConfigMap waits, and is to be watched: %v", err)
	}
}

func TestThousandsOfKindsDoNotKeepTheRestWaiting(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &lister{}
	c := adopting(l, &now)

	served := make([]kind.Served, 0, 250)
	for i := range 250 {
		served = append(served, kind.Served{GVK: schema.GroupVersionKind{Group: "g.org", Version: "v1", Kind: fmt.Sprintf("K%d", i)}, Definition: "d", Owns: true})
	}

	for i, want := range []bool{false, false, true, true} {
		before := len(l.calls)

		all, err := c.Adopt(t.Context(), served)
		if err != nil || all != want || len(l.calls)-before > adoptAtOnce {
			t.Errorf("pass %d: %d lists, all: %t, %v", i, len(l.calls)-before, all, err)
		}
	}

	if most := slices.Max(slices.Collect(maps.Values(l.calls))); len(l.calls) != len(served) || most != 1 {
		t.Errorf("%d kinds are listed, at most %d times each", len(l.calls), most)
	}
}
