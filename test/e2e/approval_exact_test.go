// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/pending"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Fields of what a store composes that its Composition or its editor sets.
const (
	objectVersion, objectSize = "spec.forProvider.manifest.data.version", "spec.forProvider.manifest.data.size"
	noteVersion, noteSize     = "data.version", "data.size"
)

// approvesStores are the rights to approve all changes of what a store composes that destroy nothing.
func approvesStores() [][3]string {
	return [][3]string{{v1alpha1.VerbApprove, "kubernetes.m.crossplane.io", "objects"}, {v1alpha1.VerbApprove, "", "configmaps"}}
}

// stocked is a store, and what is held of it.
type stocked struct {
	cluster

	pending     pendings
	composition string
}

func newStocked(t *testing.T, name string) stocked {
	t.Helper()

	return stocked{cluster: newCluster(t, "Store", name), pending: pendingsOf(t, "shop.example.org/v1", "Store", namespace, name), composition: name}
}

// made makes a small store of version v1.
func (s stocked) made(ctx context.Context, parts ...string) error {
	if err := errors.Join(s.applyFile(ctx, "stores.yaml"), s.composed(ctx, "v1", parts...), s.resized(ctx, hans, "small")); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "a small store", all(s.shows("size", "small", parts...), s.shows("version", "v1", parts...), s.settled))
}

// composed has the Composition ask for a version.
func (s stocked) composed(ctx context.Context, version string, parts ...string) error {
	return s.apply(ctx, admin, storeComposition(s.composition, version, parts...))
}

// resized has somebody ask for a size.
func (s stocked) resized(ctx context.Context, user, size string) error {
	return s.apply(ctx, user, storeOf(s.composition, s.name, size))
}

// upgraded has the Composition ask for a version, waits until it is held of data and note, and returns
// the digests of both changes.
func (s stocked) upgraded(ctx context.Context, version string) (object, note string, err error) {
	if err := s.composed(ctx, version, "data"); err != nil {
		return "", "", err
	}

	ofObject, ofNote := held{kind: "Object", field: objectVersion, to: version}, held{kind: "ConfigMap", field: noteVersion, to: version}

	if err := scenario.Eventually(ctx, "a list", s.pending.lists(nil, ofObject, ofNote)); err != nil {
		return "", "", err
	}

	object, err = s.pending.digest(ctx, ofObject)
	note, err2 := s.pending.digest(ctx, ofNote)

	return object, note, errors.Join(err, err2)
}

// halted has Crossplane leave the XR alone once it has ended what it was at.
func (c cluster) halted(ctx context.Context) error {
	xr, err := c.xr(ctx)
	if err != nil {
		return err
	}

	if err := c.setPaused(ctx, xr, `"true"`); err != nil {
		return err
	}

	return scenario.Eventually(ctx, "a paused XR", c.paused)
}

// resumed has Crossplane go on with it.
func (c cluster) resumed(ctx context.Context) error {
	xr, err := c.xr(ctx)
	if err != nil {
		return err
	}

	return c.setPaused(ctx, xr, "null")
}

// carries checks that the XR carries what so many approved changes are let through by.
func (c cluster) carries(want int) check {
	return func(ctx context.Context) error {
		xr, err := c.xr(ctx)
		if err != nil {
			return err
		}

		list, err := allowance.Parse(xr)
		if err != nil {
			return err
		}

		var digests []string

		for _, a := range list {
			if a.Digest != "" && !slices.Contains(digests, a.Digest) {
				digests = append(digests, a.Digest)
			}
		}

		if len(digests) != want {
			return fmt.Errorf("%s %q carries %+v, not of %d approved changes: %w", c.kind.Kind, c.name, list, want, world.ErrOther)
		}

		return nil
	}
}

// digest is that of a change which is listed.
func (p pendings) digest(ctx context.Context, want held) (string, error) {
	e, err := p.entry(ctx, want)

	return e.Digest, err
}

// entry is a change that is listed.
func (p pendings) entry(ctx context.Context, want held) (v1alpha1.HeldChange, error) {
	pch, err := p.get(ctx)
	if err != nil {
		return v1alpha1.HeldChange{}, err
	}

	i := slices.IndexFunc(pch.Status.Changes, want.matches)
	if i < 0 {
		return v1alpha1.HeldChange{}, fmt.Errorf("%+v is not listed among %+v: %w", want, pch.Status.Changes, world.ErrOther)
	}

	return pch.Status.Changes[i], nil
}

// approving is a ChangeApproval of changes by their digests, whatever is listed by now.
func (p pendings) approving(name string, digests ...string) *v1alpha1.ChangeApproval {
	return &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.root.Namespace, Name: name},
		Spec: v1alpha1.ChangeApprovalSpec{
			PendingChange: pending.Name(pending.KeyOf(p.root).GroupKind, p.root.Name), Changes: digests, Reason: "CHG-" + name,
		},
	}
}

// approveExactly makes one. Rights that were given just now count a moment later.
func (a approver) approveExactly(ctx context.Context, p pendings, name string, digests ...string) error {
	return scenario.Eventually(ctx, "an approval", func(ctx context.Context) error {
		return a.Create(ctx, p.approving(name, digests...))
	})
}

// decided checks what a ChangeApproval has come to for one change, and what it says.
func (p pendings) decided(name, digest string, state v1alpha1.ApprovalState, words ...string) check {
	return func(ctx context.Context) error {
		cha := &v1alpha1.ChangeApproval{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: p.root.Namespace, Name: name}, cha); err != nil {
			return err
		}

		for _, d := range cha.Status.Changes {
			if d.Digest == digest && d.State == state && mentions(d.Message, words...) {
				return nil
			}
		}

		return fmt.Errorf("ChangeApproval %q is %+v, not %s of %s with %q: %w", name, cha.Status.Changes, state, digest, words, world.ErrOther)
	}
}

// writes are what an object was written to be, one after the other.
type writes struct {
	mu   sync.Mutex
	seen []string
}

// history follows one object until the test ends, from before it is made. What is not shown of it does
// not count.
func (c cluster) history(t *testing.T, gvk schema.GroupVersionKind, is func(*unstructured.Unstructured) bool, show func(*unstructured.Unstructured) string) *writes {
	t.Helper()

	w := &writes{}

	world.Watch(t.Context(), world.Connect(t, running.Config()), gvk, func(u *unstructured.Unstructured, event watch.EventType) {
		if u.GetNamespace() != c.namespace || !is(u) {
			return
		}

		w.mu.Lock()
		defer w.mu.Unlock()

		text := "gone"
		if event != watch.Deleted {
			text = show(u)
		}

		if n := len(w.seen); n == 0 || w.seen[n-1] != text {
			w.seen = append(w.seen, text)
		}
	})

	return w
}

// outsideHistory follows the external object of the part data: what its provider writes.
func (c cluster) outsideHistory(t *testing.T, show func(*unstructured.Unstructured) string) *writes {
	t.Helper()

	return c.history(t, configMapKind(), func(u *unstructured.Unstructured) bool { return u.GetName() == c.name+"-data" }, show)
}

// partHistory follows a part.
func (c cluster) partHistory(t *testing.T, gvk schema.GroupVersionKind, part string, show func(*unstructured.Unstructured) string) *writes {
	t.Helper()

	return c.history(t, gvk, func(u *unstructured.Unstructured) bool {
		parent, ok := resource.ParentOf(u)

		return ok && parent.Kind == c.kind.Kind && parent.Name == c.name && resource.Annotation(u, annotationPart) == part
	}, show)
}

// sizeAndVersion are those that a ConfigMap has.
func sizeAndVersion(u *unstructured.Unstructured) string {
	return resource.String(u.Object, "data", "size") + " " + resource.String(u.Object, "data", "version")
}

// forget forgets all but the last.
func (w *writes) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.seen = w.seen[max(0, len(w.seen)-1):]
}

// were checks what an object was written to be, first to last: this and nothing else.
func (w *writes) were(want ...string) check {
	return func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()

		if !slices.Equal(w.seen, want) {
			return fmt.Errorf("it was %q, not %q: %w", w.seen, want, world.ErrOther)
		}

		return nil
	}
}

// TestAnApprovalIsOfOneFieldAlone while others of the same object change.
func TestAnApprovalIsOfOneFieldAlone(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	s := newStocked(t, "exact-field")
	berta := approverNamed(t, "exact-field-berta", approvesStores()...)

	outside := s.outsideHistory(t, sizeAndVersion)

	var version string

	ofVersion := held{kind: "Object", field: objectVersion, to: "v2"}
	others := []held{
		{kind: "ConfigMap", field: noteVersion, to: "v2"},
		{kind: "Object", field: objectSize, to: "huge"},
		{kind: "ConfigMap", field: noteSize, to: "huge"},
	}

	s.play(t, []scenario.Step{
		{Title: "A new version of the Composition is held", Run: func(ctx context.Context) (err error) {
			if err := s.made(ctx, "data"); err != nil {
				return err
			}

			version, _, err = s.upgraded(ctx, "v2")

			return err
		}},
		{Title: "Another field changes, as somebody asks who may", Run: func(ctx context.Context) error {
			if err := s.resized(ctx, hans, "large"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a large store", all(
				s.shows("size", "large", "data"), s.note("size", "large"), s.spent, s.pending.lists(nil, ofVersion, others[0])))
		}},
		{Title: "And once more, as somebody asks who may not", Run: func(ctx context.Context) error {
			if err := s.resized(ctx, anna, "huge"); err != nil {
				return err
			}

			return scenario.Eventually(ctx, "a list", s.pending.lists([]string{annaName}, append([]held{ofVersion}, others...)...))
		}},
		{Title: "What was approved by then goes through, and nothing else", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, s.pending, "exact-field", version); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the new version outside", all(
				s.shows("version", "v2", "data"), s.pending.becomes("exact-field", v1alpha1.ApprovalStateApplied), s.spent,
				s.pending.lists([]string{annaName}, others...))); err != nil {
				return err
			}

			return still(ctx, all(outside.were("small v1", "large v1", "large v2"), s.note("version", "v1"), s.note("size", "large")))
		}},
	})
}

// TestAnApprovalCountsWhereTheStoreHasSettled at the generation that it has when the approval comes:
// what a policy allows is over by then.
func TestAnApprovalCountsWhereTheStoreHasSettled(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	s := newStocked(t, "exact-settled")
	berta := approverNamed(t, "exact-settled-berta", approvesStores()...)

	outside := s.outsideHistory(t, sizeAndVersion)

	var (
		object     string
		generation int64
	)

	s.play(t, []scenario.Step{
		{Title: "A store has settled, but for what is held", Run: func(ctx context.Context) (err error) {
			if err := s.made(ctx, "data"); err != nil {
				return err
			}

			if object, _, err = s.upgraded(ctx, "v2"); err != nil {
				return err
			}

			return rests(ctx, "a store that has settled", func(ctx context.Context) error {
				xr, err := s.xr(ctx)
				if err != nil {
					return err
				}

				generation = resource.Generation(xr)

				c, _ := resource.ConditionOf(xr, v1alpha1.ConditionKausality)
				if !strings.HasPrefix(c.Message, fixture.SettledMessage(generation)) || !strings.Contains(c.Message, ", 2 changes held") {
					return fmt.Errorf("at generation %d the condition says %q: %w", generation, c.Message, world.ErrOther)
				}

				return nil
			})
		}},
		{Title: "What is approved goes through at that generation", Run: func(ctx context.Context) error {
			if err := berta.approveExactly(ctx, s.pending, "exact-settled", object); err != nil {
				return err
			}

			if err := scenario.Eventually(ctx, "the new version outside", all(
				s.shows("version", "v2", "data"), s.pending.becomes("exact-settled", v1alpha1.ApprovalStateApplied), s.spent)); err != nil {
				return err
			}

			xr, err := s.xr(ctx)
			if err != nil {
				return err
			}

			if got := resource.Generation(xr); got != generation {
				return fmt.Errorf("its generation is %d, and was %d: %w", got, generation, world.ErrOther)
			}

			return rests(ctx, "a store that has settled", all(outside.were("small v1", "small v2"), s.note("version", "v1"), s.says("settled, 1 change held", " of ConfigMap")))
		}},
	})
}

// TestTwoApprovalsThatCrossLetAChangeThroughOnce whichever comes first.
func TestTwoApprovalsThatCrossLetAChangeThroughOnce(t *testing.T) { //nolint:tparallel // Steps build on each other.
	world.Long(t)
	t.Parallel()

	versions := []string{"v2", "v1", "v2", "v1", "v2"}
	s := newStocked(t, "exact-crossing")
	people := []approver{
		approverNamed(t, "exact-crossing-berta", approvesStores()...), approverNamed(t, "exact-crossing-clara", approvesStores()...),
	}

	outside := s.outsideHistory(t, sizeAndVersion)
	gates := s.partHistory(t, objectKind(), "data", func(u *unstructured.Unstructured) string {
		rec, err := allowance.ParseGate(u)
		if err != nil || rec == nil {
			return "none"
		}

		return string(rec.State)
	})
	wrote, moved := []string{"small v1"}, []string{string(v1alpha1.GateClosed)}

	steps := make([]scenario.Step, 0, 1+len(versions))
	steps = append(steps, scenario.Step{Title: "A store is made", Run: func(ctx context.Context) error {
		if err := s.made(ctx, "data"); err != nil {
			return err
		}

		return scenario.Eventually(ctx, "a closed gate", func(ctx context.Context) error {
			gates.forget()

			return gates.were(moved...)(ctx)
		})
	}})

	// A change of before the last one is that of before it, with the digest that was approved then.
	for i, version := range versions {
		steps = append(steps, scenario.Step{Title: fmt.Sprintf("Round %d to %s", i, version), Run: func(ctx context.Context) error {
			object, note, err := s.upgraded(ctx, version)
			if err != nil {
				return err
			}

			// 1. What was approved before is used.
			if err := still(ctx, all(outside.were(wrote...), gates.were(moved...), s.carries(0))); err != nil {
				return err
			}

			// 2. Two approve it at the same time.
			wrote, moved = append(wrote, "small "+version), append(moved, string(v1alpha1.GateOpen), string(v1alpha1.GateClosed))

			var wg sync.WaitGroup

			errs := make([]error, len(people))
			for j, a := range people {
				wg.Go(func() { errs[j] = a.approveExactly(ctx, s.pending, fmt.Sprintf("crossing-%d-%d", i, j), object, note) })
			}

			wg.Wait()

			if err := errors.Join(errs...); err != nil {
				return err
			}

			// 3. Each comes to an end, and one of them has let it through.
			if err := scenario.Eventually(ctx, "the end", all(s.shows("version", version, "data"), s.note("version", version), s.pending.finished,
				s.settled, s.spent, s.crossed(t, i, object), s.crossed(t, i, note))); err != nil {
				return err
			}

			return still(ctx, all(outside.were(wrote...), gates.were(moved...)))
		}})
	}

	s.play(t, steps)
}

// crossed checks that both approvals of a change have ended, at least one of them by its use.
func (s stocked) crossed(t *testing.T, round int, digest string) check {
	t.Helper()

	return func(ctx context.Context) error {
		var states []v1alpha1.ApprovalState

		for j := range 2 {
			cha := &v1alpha1.ChangeApproval{}
			if err := s.pending.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: fmt.Sprintf("crossing-%d-%d", round, j)}, cha); err != nil {
				return err
			}

			for _, d := range cha.Status.Changes {
				if d.Digest == digest {
					states = append(states, d.State)
				}
			}
		}

		applied, superseded := v1alpha1.ApprovalStateApplied, v1alpha1.ApprovalStateSuperseded
		ended := !slices.ContainsFunc(states, func(s v1alpha1.ApprovalState) bool { return s != applied && s != superseded })

		if len(states) != 2 || !ended || !slices.Contains(states, applied) {
			return fmt.Errorf("the approvals are %v: %w", states, world.ErrOther)
		}

		t.Logf("round %d: %v", round, states)

		return nil
	}
}
