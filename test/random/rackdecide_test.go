// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// decision is a ChangeApproval with another name.
func (p *rackPlay) decision(pch *v1alpha1.PendingChange, decision v1alpha1.ApprovalDecision) *v1alpha1.ChangeApproval {
	p.next++

	return &v1alpha1.ChangeApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: deskNamespace, Name: fmt.Sprintf("%s-%d", p.name, p.next)},
		Spec:       v1alpha1.ChangeApprovalSpec{PendingChange: pch.Name, Decision: decision, Reason: "CHG-" + p.name},
	}
}

// decide makes a ChangeApproval, and remembers it.
func (p *rackPlay) decide(ctx context.Context, who string, cha *v1alpha1.ChangeApproval) (*v1alpha1.ChangeApproval, error) {
	at := time.Now()
	made, err := p.create(ctx, who, cha)

	p.notef("%s: %s %s of %d changes, digest %t: %v", who, cha.Name, cha.Spec.Decision, len(cha.Spec.Changes), cha.Spec.Digest != "", err)

	if err == nil {
		p.mine = append(p.mine, own{cha: made, at: at})
	}

	return made, err
}

// approve has somebody approve some of what is listed, or all of it.
func (p *rackPlay) approve(ctx context.Context) error { return p.vote(ctx, v1alpha1.DecisionApprove) }

// reject has somebody reject some of it.
func (p *rackPlay) reject(ctx context.Context) error { return p.vote(ctx, v1alpha1.DecisionReject) }

func (p *rackPlay) vote(ctx context.Context, decision v1alpha1.ApprovalDecision) error {
	pch, err := p.find(ctx)
	if err != nil || pch == nil || len(p.known(pch)) == 0 {
		return err
	}

	cha := p.decision(pch, decision)

	switch n := p.rng.IntN(3); {
	case n == 0 && len(p.known(pch)) == int(pch.Status.Total):
		cha.Spec.Digest = pch.Status.Digest
	case n == 1:
		cha.Spec.Digest, cha.Spec.Changes = pch.Status.Digest, p.some(pch)
	default:
		cha.Spec.Changes = p.some(pch)
	}

	if _, err := p.decide(ctx, []string{bertaName, claraName}[p.rng.IntN(2)], cha); !denied(err) {
		return err
	}

	return nil // The list was another one by then.
}

// approveWhatWasListed has berta approve by an old list: that of the list itself is refused, and that of
// its changes grants nothing but what is still held.
func (p *rackPlay) approveWhatWasListed(ctx context.Context) error {
	if p.stale == nil || len(p.known(p.stale)) < int(p.stale.Status.Total) {
		return nil
	}

	whole := p.rng.IntN(2) == 0
	cha := p.decision(p.stale, v1alpha1.DecisionApprove)

	if whole {
		cha.Spec.Digest = p.stale.Status.Digest
	} else {
		cha.Spec.Changes = p.some(p.stale)
	}

	before, err := p.digest(ctx)
	if err != nil {
		return err
	}

	p.loose[cha.Name] = true
	_, err = p.decide(ctx, bertaName, cha)

	if err != nil && !denied(err) {
		return err
	}

	after, err2 := p.digest(ctx)
	if err2 != nil {
		return err2
	}

	if old := p.stale.Status.Digest; whole && err == nil && before != old && after != old {
		return fmt.Errorf("the digest %s of a list of before was taken, it is %s: %w", old, after, world.ErrOther)
	}

	return nil
}

// digest is that of what is listed.
func (p *rackPlay) digest(ctx context.Context) (digest string, err error) {
	return digest, eventually(ctx, "a digest", func(ctx context.Context) error {
		pch, err := p.pending(ctx)
		if err == nil && pch != nil {
			digest = pch.Status.Digest
		}

		return err
	})
}

// approveOwn has anna approve what she asks for, which is refused.
func (p *rackPlay) approveOwn(ctx context.Context) error {
	pch, err := p.find(ctx)
	if err != nil || pch == nil || len(p.known(pch)) == 0 || !slices.Contains(pch.Status.Requesters, annaName) {
		return err
	}

	cha := p.decision(pch, v1alpha1.DecisionApprove)
	cha.Spec.Changes = p.some(pch)

	if _, err = p.decide(ctx, annaName, cha); denied(err) {
		return nil
	} else if err != nil {
		return err
	}

	// Unless it was made meanwhile.
	now, err := p.pending(ctx)
	if err == nil && now != nil && slices.Contains(now.Status.Requesters, annaName) {
		err = fmt.Errorf("anna has approved what she asks for: %w", world.ErrOther)
	}

	return err
}

// withdraw has somebody delete a ChangeApproval of theirs.
func (p *rackPlay) withdraw(ctx context.Context) error {
	m, err := p.any(ctx, func(context.Context, *own) (bool, error) { return true, nil })
	if err != nil || m == nil {
		return err
	}

	if err := p.remove(ctx, m.cha.Spec.Approver.Username, m.cha); err != nil {
		return err
	}

	m.ended = time.Now()
	p.notef("%s deletes %s", m.cha.Spec.Approver.Username, m.cha.Name)

	return nil
}

// any is a ChangeApproval that is there, in some order; nil for none that is as it is to be.
func (p *rackPlay) any(ctx context.Context, is func(ctx context.Context, m *own) (bool, error)) (*own, error) {
	for _, i := range p.rng.Perm(len(p.mine)) {
		m := &p.mine[i]
		if !m.ended.IsZero() {
			continue
		}

		if ok, err := is(ctx, m); ok || err != nil {
			return m, err
		}
	}

	return nil, nil //nolint:nilnil // None is no error.
}

// state is that of all changes of a ChangeApproval; empty where they have several.
func (p *rackPlay) state(ctx context.Context, m *own) (state v1alpha1.ApprovalState, err error) {
	return state, eventually(ctx, "a ChangeApproval", func(ctx context.Context) error {
		cha := &v1alpha1.ChangeApproval{}
		if err := p.typed.Get(ctx, client.ObjectKeyFromObject(m.cha), cha); err != nil {
			return err
		}

		state = ""

		for i, d := range cha.Status.Changes {
			if i > 0 && d.State != state {
				state = ""

				break
			}

			state = d.State
		}

		return nil
	})
}

// withdrawOfOthers has anna delete a rejection that stands, which is refused.
func (p *rackPlay) withdrawOfOthers(ctx context.Context) error {
	m, err := p.any(ctx, func(ctx context.Context, m *own) (bool, error) {
		state, err := p.state(ctx, m)

		return state == v1alpha1.ApprovalStateRejected && m.cha.Spec.Decision == v1alpha1.DecisionReject, err
	})
	if err != nil || m == nil {
		return err
	}

	err = p.remove(ctx, annaName, m.cha)
	p.notef("anna deletes %s: %v", m.cha.Name, err)

	if err == nil {
		err = fmt.Errorf("anna has withdrawn what is %s's: %w", m.cha.Spec.Approver.Username, world.ErrOther)
	} else if denied(err) {
		err = nil
	}

	return err
}

// makeAgain has somebody delete a ChangeApproval that was used, and make it again as it was, as who
// applies the same once more does; and then anna asks for the same once more.
func (p *rackPlay) makeAgain(ctx context.Context) error {
	// 1. There is one that was used.
	if err := p.approve(ctx); err != nil {
		return err
	}

	if err := p.settle(ctx); err != nil {
		return err
	}

	m, err := p.any(ctx, func(ctx context.Context, m *own) (bool, error) {
		state, err := p.state(ctx, m)

		return state == v1alpha1.ApprovalStateApplied, err
	})
	if err != nil || m == nil {
		return err
	}

	// 2. It is made again.
	who := m.cha.Spec.Approver.Username

	if err := p.remove(ctx, who, m.cha); err != nil {
		return err
	}

	m.ended = time.Now()
	p.used[m.cha.Name] = true

	again := &v1alpha1.ChangeApproval{ObjectMeta: metav1.ObjectMeta{Namespace: deskNamespace, Name: m.cha.Name}, Spec: *m.cha.Spec.DeepCopy()}
	again.Spec.Approver = nil
	again.Spec.Digest = ""

	if _, err := p.decide(ctx, who, again); err != nil && !denied(err) { // It may be of somebody who has asked for something by now.
		return err
	}

	// 3. So is the change.
	change := p.listed[m.cha.Spec.Changes[0]]
	if change.field != "size" && change.field != "color" {
		return nil
	}

	if err := p.set(ctx, p.hans, hansName, change.field, change.from); err != nil {
		return err
	}

	if p.rng.IntN(2) == 0 {
		if err := p.settle(ctx); err != nil {
			return err
		}
	}

	return p.set(ctx, p.anna, annaName, change.field, change.value)
}
