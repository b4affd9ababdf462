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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// approved is one change that is held, approved and made.
type approved struct {
	number    int
	was, size string
}

// next asks for what there was before: the change is the same as the one before the last, which
// was approved as well.
func (a approved) next() approved { return approved{number: a.number + 1, was: a.size, size: a.was} }

// name of the ChangeApproval.
func (a approved) name() string { return fmt.Sprint("chg-", a.number) }

// The steps of an approval, in order.
const (
	stepListed = iota
	stepStored
	stepGranted
	stepOpen
	stepApplied
)

// steps are when processes die.
func (a approved) steps() []step {
	asked := func(s sight) bool {
		return s[managed] != nil && resource.String(s[managed].Object, manifest("size")...) == a.size
	}

	return []step{
		stepListed: {"listed", func(s sight) bool { return a.listed(s[pendingChange]) == nil }},
		stepStored: {"approval-stored", func(s sight) bool { return s[changeApproval] != nil }},
		stepGranted: {"allowance-written", func(s sight) bool {
			return s[changeApproval] != nil && carries(s[composite], of(s[changeApproval].GetUID()))
		}},
		stepOpen: {"gate-open", func(s sight) bool {
			if !asked(s) {
				return false
			}

			rec, err := allowance.ParseGate(s[managed])

			return err == nil && rec != nil && rec.State == v1alpha1.GateOpen
		}},
		stepApplied: {"applied-not-remembered", func(s sight) bool {
			return s[external] != nil && resource.String(s[external].Object, "data", "size") == a.size && !a.remembered(s[composite])
		}},
	}
}

// remembered reports whether an XR remembers that the approval was used.
func (a approved) remembered(u *unstructured.Unstructured) bool {
	list, err := allowance.ParseApproved(u)

	return err == nil && slices.ContainsFunc(list, func(e v1alpha1.ApprovedChange) bool { return e.Approval == a.name() })
}

// of are the allowances that a ChangeApproval gave.
func of(approval types.UID) func(v1alpha1.Allowance) bool {
	return func(a v1alpha1.Allowance) bool { return a.Approval == string(approval) }
}

// because are the allowances that follow from a ChangeApproval, each object says by its name.
func because(name string) func(v1alpha1.Allowance) bool {
	return func(a v1alpha1.Allowance) bool {
		return a.Initiator == berta && len(a.Trace) > 0 && a.Trace[0].Kind == changeApproval && a.Trace[0].Name == name
	}
}

// listed checks that a PendingChange lists the change, that can be approved, and who asks for it.
func (a approved) listed(u *unstructured.Unstructured) error {
	pch := &v1alpha1.PendingChange{}
	if err := typed(u, pch); err != nil {
		return err
	}

	is := pch.Status
	if is.Total != 1 || len(is.Changes) != 1 || is.Changes[0].To != a.size || is.Changes[0].Digest == "" || !slices.Equal(is.Requesters, []string{annaUser}) ||
		!meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionCurrent) {
		return fmt.Errorf("the status is %+v: %w", is, world.ErrOther)
	}

	return nil
}

// typed reads an object; there has to be one.
func typed(u *unstructured.Unstructured, out client.Object) error {
	if u == nil {
		return fmt.Errorf("there is no %T: %w", out, world.ErrOther)
	}

	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}

	return yaml.Unmarshal(raw, out)
}

// death kills what is to die, and says how long that took.
type death func(ctx context.Context) (string, error)

// TestAnApprovalIsUsedOnceWhateverDiesOnTheWay kills every process at every step of an approval. The
// booth goes to and fro between two sizes, so that each change but the first two is one that was
// approved before: that has no say any more.
func TestAnApprovalIsUsedOnceWhateverDiesOnTheWay(t *testing.T) {
	world.Long(t)

	impatient(t)

	b, last := newBooth(t, "approved"), approved{was: "large", size: "small"}

	for at, s := range last.steps() {
		for _, process := range processes() {
			if process == "kube-controller-manager" {
				continue // It has no part in this.
			}

			last = last.next()

			if !b.survives(t, last, process, at, func(ctx context.Context) (string, error) { return kill(ctx, process) }, s) {
				return // The next one builds on it.
			}
		}
	}

	// Of two managers each dies, the one that leads and the one that does not.
	pair := newPair(t)

	for at, s := range last.steps() {
		for _, who := range []string{"leader", "follower"} {
			last = last.next()

			if !b.survives(t, last, who, at, func(ctx context.Context) (string, error) { return pair.kill(ctx, who == "leader") }, s) {
				return
			}
		}
	}
}

// survives plays one approval.
func (b *booth) survives(t *testing.T, a approved, who string, at int, dies death, s step) bool {
	t.Helper()

	return t.Run(who+"/"+s.name, func(t *testing.T) {
		if err := b.play(t, a, at, dies); err != nil {
			t.Fatalf("%v\n%s", err, b.dump(t.Context(), a))
		}
	})
}

// play has anna ask for a size and berta approve it, kills at a step, and checks what comes of it.
func (b *booth) play(t *testing.T, a approved, at int, dies death) error {
	t.Helper()

	ctx := t.Context()

	_, since, err := readAt(ctx, "/", 0)
	if err != nil {
		return err
	}

	w, err := watchParts(ctx, b.parts(a))
	if err != nil {
		return err
	}
	defer w.stop()

	// 1. What anna asks for is held, also where it was approved before.
	if err := b.anna.Patch(ctx, b.object(a, composite), world.Merge(fmt.Sprintf(`{"spec": {"size": %q}}`, a.size))); err != nil {
		return err
	}

	if err := w.await(ctx, a.steps()[stepListed]); err != nil {
		return err
	}

	var took string

	if at == stepListed {
		if took, err = dies(ctx); err != nil {
			return err
		}
	}

	// 2. Berta approves it: as a person does, again where that did not work.
	stored := make(chan error, 1)

	go func() {
		stored <- scenario.Eventually(ctx, "an approval", func(ctx context.Context) error { return b.approve(ctx, a) })
	}()

	// 3. Kill, the moment that the step is seen.
	if at != stepListed {
		if err := w.await(ctx, a.steps()[at]); err != nil {
			return errors.Join(err, <-stored)
		}

		if took, err = dies(ctx); err != nil {
			return err
		}
	}

	// 4. It is made, and known to be.
	start := time.Now()

	if err := errors.Join(<-stored, scenario.Eventually(ctx, a.size, func(ctx context.Context) error { return b.made(ctx, a) })); err != nil {
		return err
	}

	t.Logf("%s, and all was quiet after another %s", took, time.Since(start).Round(time.Millisecond))

	// 5. Nothing else ever was, for a moment even.
	return errors.Join(b.history(ctx, a, since), running.Err())
}

// approve has berta approve what is listed; once that is stored, it is.
func (b *booth) approve(ctx context.Context, a approved) error {
	u, err := b.get(ctx, a, pendingChange)
	if err != nil {
		return err
	}

	pch := &v1alpha1.PendingChange{}
	if err := typed(u, pch); err != nil {
		return err
	}

	if err := a.listed(u); err != nil {
		if _, gone := b.get(ctx, a, changeApproval); gone == nil {
			return nil // The answer to an earlier attempt was lost.
		}

		return err
	}

	err = b.berta.Decide(ctx, pch, a.name(), v1alpha1.DecisionApprove, func(v1alpha1.HeldChange) bool { return true })

	return client.IgnoreAlreadyExists(err)
}

// made checks that a change is where it belongs, that its approval is used, and that nothing is
// under way any more.
func (b *booth) made(ctx context.Context, a approved) error {
	u, err := b.get(ctx, a, changeApproval)
	if err != nil {
		return err
	}

	cha := &v1alpha1.ChangeApproval{}
	if err := typed(u, cha); err != nil {
		return err
	}

	if list := cha.Status.Changes; len(list) != 1 || list[0].State != v1alpha1.ApprovalStateApplied {
		return fmt.Errorf("the ChangeApproval is %+v: %w", list, world.ErrOther)
	}

	if err := errors.Join(b.quiet(ctx, a), b.finished(ctx, a)); err != nil {
		return err
	}

	return b.remembered(ctx, a, cha)
}

// history checks what there was while a change was approved: the provider made it once, with that
// very value, and not before it was approved; and its approval was given once, and taken away
// once.
func (b *booth) history(ctx context.Context, a approved, since int64) error {
	stored, _, err := readAt(ctx, b.parts(a)[changeApproval].key(), 0)
	if err != nil || stored == nil {
		return fmt.Errorf("there is no ChangeApproval: %w", errors.Join(err, world.ErrOther))
	}

	u, err := decode(stored.Value)
	if err != nil {
		return err
	}

	cha := &v1alpha1.ChangeApproval{}
	if err := typed(u, cha); err != nil {
		return err
	}

	// 1. It is the same change as the last time.
	digest := cha.Spec.Changes[0]
	if was := b.digests[a.size]; was != "" && was != digest {
		return fmt.Errorf("the change to %s has the digest %s, and had %s: %w", a.size, digest, was, world.ErrOther)
	}

	b.digests[a.size] = digest

	// 2. What the provider made of it, and what the gate let through.
	var errs []error

	for kind, path := range map[string][]string{managed: manifest("size"), external: {"data", "size"}} {
		list, err := versions(ctx, b.parts(a)[kind].key(), since)
		if err != nil {
			return err
		}

		sizes := make([]string, len(list))
		for i, u := range list {
			sizes[i] = resource.String(u.Object, path...)

			if kind == managed {
				errs = append(errs, narrow(u, because(cha.Name)))
			}
		}

		if got, want := slices.Compact(sizes), []string{a.was, a.size}; !slices.Equal(got, want) {
			errs = append(errs, fmt.Errorf("%s had the sizes %v, want %v: %w", kind, got, want, world.ErrOther))
		}

		if n := openings(list); kind == managed && n != 1 {
			errs = append(errs, fmt.Errorf("the gate opened %d times: %w", n, world.ErrOther))
		}

		before, _, err := readAt(ctx, b.parts(a)[kind].key(), stored.Created)
		if err != nil || before == nil {
			return fmt.Errorf("there was no %s: %w", kind, errors.Join(err, world.ErrOther))
		}

		if u, err = decode(before.Value); err != nil || resource.String(u.Object, path...) != a.was {
			errs = append(errs, fmt.Errorf("%s was changed before that was approved: %w", kind, errors.Join(err, world.ErrOther)))
		}
	}

	// 3. What the XR carried.
	list, err := versions(ctx, b.parts(a)[composite].key(), since)
	if err != nil {
		return err
	}

	carried := make([]bool, len(list))
	for i, u := range list {
		carried[i] = carries(u, of(cha.UID))

		if carries(u, not(of(cha.UID))) {
			errs = append(errs, fmt.Errorf("the XR carried an allowance of another: %s: %w", resource.Annotation(u, v1alpha1.AnnotationAllowances), world.ErrOther))
		}
	}

	if got := slices.Compact(carried); !slices.Equal(got, []bool{false, true, false}) {
		errs = append(errs, fmt.Errorf("the XR carried the approval %v: %w", got, world.ErrOther))
	}

	return errors.Join(errs...)
}
