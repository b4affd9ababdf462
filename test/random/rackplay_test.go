// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/patience"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// A rackPlay is one rack, and what people ask for of it and decide about that, all of which its seed
// decides but what the machine's timing does.
type rackPlay struct {
	rack

	seed   uint64
	rng    *rand.Rand
	traits []any

	// asked is what is asked for of each server, by whomever; no spare one where there are no values.
	asked map[string]values
	// spared is true while a spare one is asked for.
	spared  bool
	release int

	book ledger
	// listed are the changes that were seen, by digest, and stale is a list that was.
	listed map[string]approvable
	stale  *v1alpha1.PendingChange
	mine   []own
	// used are names of ChangeApprovals that were used, and loose those that were made of an old list.
	used, loose map[string]bool
	next        int
	unlogged    int
	diary       []string
}

func newRackPlay(d desk, seed uint64) *rackPlay {
	p := &rackPlay{
		rack: rack{desk: d, name: fmt.Sprintf("r%d", seed)}, seed: seed, rng: rand.New(rand.NewPCG(seed, 2)), release: 1,
		listed: map[string]approvable{}, used: map[string]bool{}, loose: map[string]bool{}, asked: map[string]values{},
	}

	p.traits = [][]any{nil, nil, {"Unnumbered"}, {"Asynchronous"}, {"Asynchronous", "Announcing"}}[p.rng.IntN(5)]
	p.spared = p.rng.IntN(3) == 0

	return p
}

func (p *rackPlay) notef(format string, args ...any) {
	p.diary = append(p.diary, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// run plays it to the end.
func (p *rackPlay) run(ctx context.Context) error {
	// 1. Hans makes it.
	if err := p.begin(ctx); err != nil {
		return err
	}

	// 2. Things happen.
	for range 5 + p.rng.IntN(6) {
		if err := p.step(ctx); err != nil {
			return err
		}
	}

	// 3. Each approval that stands was used, or is about what nobody asks for any more.
	if err := p.settle(ctx); err != nil {
		return err
	}

	// 4. All that is held is approved, and made.
	if err := p.approveAll(ctx); err != nil {
		return err
	}

	if err := p.settle(ctx); err != nil {
		return err
	}

	// 5. Hans deletes it.
	return p.end(ctx)
}

// begin has hans make it.
func (p *rackPlay) begin(ctx context.Context) error {
	first := values{"size": p.size(), "color": p.color(), "release": "v1"}
	now := time.Now()

	p.asked[p.main()] = first
	if p.spared {
		p.asked[p.spare()] = maps.Clone(first)
	}

	for name := range p.asked {
		p.book.askings = append(p.book.askings, asking{at: now, name: name, field: fieldCreate, allowed: true})
	}

	for field, value := range first {
		p.ask(now, true, field, value)
	}

	p.notef("hans makes a rack with %v, spare %t, traits %v", first, p.spared, p.traits)

	u := p.reference()
	spec := p.spec(first)
	spec["crossplane"] = map[string]any{"compositionRef": map[string]any{"name": p.name}}
	u.Object["spec"] = spec

	if err := p.compose(ctx); err != nil {
		return err
	}

	if err := eventually(ctx, "a rack", func(ctx context.Context) error { return client.IgnoreAlreadyExists(p.hans.Create(ctx, u.DeepCopy())) }); err != nil {
		return err
	}

	return eventually(ctx, "a rack that is built up", func(ctx context.Context) error {
		live := p.reference()
		if err := p.admin.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}

		if resource.Annotation(live, v1alpha1.AnnotationInitialized) != "true" {
			return fmt.Errorf("it is not: %w", world.ErrOther)
		}

		return p.quiet(ctx, p.asked, nil)
	})
}

func (*rackPlay) spec(v values) map[string]any {
	out := map[string]any{}

	if text, ok := v["size"]; ok {
		out["size"], _ = strconv.ParseInt(text, 10, 64)
	}

	if text, ok := v["color"]; ok {
		out["color"] = text
	}

	return out
}

func (p *rackPlay) size() string { return strconv.Itoa(1 + p.rng.IntN(6)) }

func (p *rackPlay) color() string { return []string{"red", "green", "blue"}[p.rng.IntN(3)] }

// compose applies its Composition.
func (p *rackPlay) compose(ctx context.Context) error {
	u := p.composition(p.releaseName(), p.spared, p.traits)

	if err := eventually(ctx, "a Composition", func(ctx context.Context) error {
		return p.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership)
	}); err != nil {
		return err
	}

	// Where a Composition changes again before Crossplane has seen its last revision, Crossplane gives
	// both revisions one number, and XRs go to and fro between them for ever.
	return eventually(ctx, "its revision", func(ctx context.Context) error { return p.revised(ctx, p.releaseName()) })
}

func (p *rackPlay) releaseName() string { return fmt.Sprint("v", p.release) }

// ask writes down what somebody asks for of all servers.
func (p *rackPlay) ask(now time.Time, allowed bool, field, value string) {
	for _, name := range []string{p.main(), p.spare()} {
		p.book.askings = append(p.book.askings, asking{at: now, name: name, field: field, value: value, allowed: allowed})

		if p.asked[name] != nil {
			p.asked[name] = maps.Clone(p.asked[name])
			p.asked[name][field] = value
		}
	}
}

// step lets one thing happen.
func (p *rackPlay) step(ctx context.Context) error {
	steps := []struct {
		weight int
		do     func(context.Context) error
	}{
		{3, func(ctx context.Context) error { return p.edit(ctx, p.hans, hansName) }},
		{6, func(ctx context.Context) error { return p.edit(ctx, p.anna, annaName) }},
		{3, p.update},
		{9, p.approve},
		{2, p.reject},
		{2, p.withdraw},
		{1, p.withdrawOfOthers},
		{2, p.approveWhatWasListed},
		{2, p.approveOwn},
		{2, p.makeAgain},
		{2, func(context.Context) error { p.makeTrouble(); return nil }},
		{3, p.rest},
		{3, p.settle},
	}

	sum := 0
	for _, s := range steps {
		sum += s.weight
	}

	for n := p.rng.IntN(sum); ; {
		if n -= steps[0].weight; n < 0 {
			return steps[0].do(ctx)
		}

		steps = steps[1:]
	}
}

// edit has somebody ask for another size or color: hans may.
func (p *rackPlay) edit(ctx context.Context, who client.Client, name string) error {
	field, pick := "size", p.size
	if p.rng.IntN(2) == 0 {
		field, pick = "color", p.color
	}

	value := pick()
	for p.asked[p.main()][field] == value {
		value = pick()
	}

	return p.set(ctx, who, name, field, value)
}

// set has somebody ask for a value.
func (p *rackPlay) set(ctx context.Context, who client.Client, name, field, value string) error {
	if p.asked[p.main()][field] == value {
		return nil
	}

	p.notef("%s asks for %s %s", name, field, value)
	p.ask(time.Now(), name == hansName, field, value)

	raw, err := json.Marshal(map[string]any{"spec": p.spec(values{field: value})})
	if err != nil {
		return err
	}

	return eventually(ctx, "an edit", func(ctx context.Context) error { return who.Patch(ctx, p.reference(), world.Merge(string(raw))) })
}

// update has the Composition ask for another release, perhaps with a spare server or without.
func (p *rackPlay) update(ctx context.Context) error {
	p.release++

	if p.rng.IntN(2) == 0 {
		p.spared = !p.spared
		field := fieldDelete

		if p.asked[p.spare()] = nil; p.spared {
			p.asked[p.spare()], field = maps.Clone(p.asked[p.main()]), fieldCreate
		}

		p.book.askings = append(p.book.askings, asking{at: time.Now(), name: p.spare(), field: field})
	}

	p.notef("release %d, spare %t", p.release, p.spared)
	p.ask(time.Now(), false, "release", p.releaseName())

	return p.compose(ctx)
}

// find looks for something to decide about, and has somebody ask for it where there is nothing.
func (p *rackPlay) find(ctx context.Context) (*v1alpha1.PendingChange, error) {
	if maps.EqualFunc(p.outsideOf(), p.wished(), maps.Equal[values, values]) {
		ask := func(ctx context.Context) error { return p.edit(ctx, p.anna, annaName) }
		if p.rng.IntN(3) == 0 {
			ask = p.update
		}

		if err := ask(ctx); err != nil {
			return nil, err
		}
	}

	return p.look(ctx, p.rng.IntN(3) > 0)
}

// look reads what is listed, perhaps once something is.
func (p *rackPlay) look(ctx context.Context, wait bool) (*v1alpha1.PendingChange, error) {
	var pch *v1alpha1.PendingChange

	err := eventually(ctx, "a list", func(ctx context.Context) (err error) {
		if pch, err = p.pending(ctx); err != nil {
			return err
		}

		if wait && (pch == nil || len(pch.Status.Changes) == 0) && p.quiet(ctx, p.asked, p.mine) != nil {
			return fmt.Errorf("nothing is listed: %w", world.ErrOther)
		}

		return nil
	})
	if err != nil || pch == nil || len(pch.Status.Changes) == 0 {
		return nil, err
	}

	for _, e := range pch.Status.Changes {
		if _, known := p.listed[e.Digest]; known {
			continue
		}

		if e.Digest == "" {
			p.notef("%s %s has no digest, unstable %t: %s", e.Ref.Name, e.Field, e.Unstable, e.Missing)

			continue
		}

		if e.Field == v1alpha1.MutationCreate && p.pinned(ctx, p.releaseName(), e.Digest) != nil {
			continue // It may be of before.
		}

		if p.listed[e.Digest], err = p.approvable(e, p.asked[p.spare()]); err != nil {
			return nil, err
		}

		p.notef("%s is %s %s to %s", e.Digest[:14], e.Ref.Name, e.Field, e.To)
	}

	if p.stale == nil || p.rng.IntN(3) == 0 {
		p.stale = pch
	}

	return pch, nil
}

// wished are the external objects that are asked for.
func (p *rackPlay) wished() map[string]values {
	out := maps.Clone(p.asked)
	maps.DeleteFunc(out, func(_ string, v values) bool { return v == nil })

	return out
}

// known are those of the changes that are listed of which it is known what they are.
func (p *rackPlay) known(pch *v1alpha1.PendingChange) []v1alpha1.HeldEntry {
	return slices.DeleteFunc(slices.Clone(pch.Status.Changes), func(e v1alpha1.HeldEntry) bool {
		_, known := p.listed[e.Digest]

		return !known
	})
}

// some are some of the changes that are listed, at least one.
func (p *rackPlay) some(pch *v1alpha1.PendingChange) []string {
	all := p.known(pch)
	out := []string{all[p.rng.IntN(len(all))].Digest}

	for _, e := range all {
		if p.rng.IntN(4) > 0 && e.Digest != out[0] {
			out = append(out, e.Digest)
		}
	}

	return out
}

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

// makeTrouble makes trouble outside.
func (p *rackPlay) makeTrouble() {
	t := external.Trouble{Fail: p.rng.IntN(3), Late: p.rng.IntN(3) == 0, Slow: time.Duration(p.rng.IntN(350)) * time.Millisecond}
	p.notef("trouble %+v", t)
	outside.Trouble([]string{p.main(), p.spare()}[p.rng.IntN(2)], t)
}

// rest lets time pass.
func (p *rackPlay) rest(context.Context) error {
	d := time.Duration(p.rng.IntN(1000)) * time.Millisecond
	p.notef("%s pass", d)
	time.Sleep(d)

	return nil
}

// settle waits until nothing is under way, and judges.
func (p *rackPlay) settle(ctx context.Context) error {
	p.notef("wait")

	if err := eventually(ctx, "quiet", func(ctx context.Context) error { return p.quiet(ctx, p.asked, p.mine) }); err != nil {
		return err
	}

	p.notef("settled: outside is %v", p.outsideOf())

	return p.judge()
}

// judge compares what was done with what was asked for and decided.
func (p *rackPlay) judge() error {
	var names []string

	for _, m := range p.mine {
		if !slices.Contains(names, m.cha.Name) {
			names = append(names, m.cha.Name)
		}
	}

	verdicts, unlogged, err := p.audit.verdicts(deskNamespace, names, p.mine, p.listed)
	if err != nil {
		return err
	}

	seen := map[string]bool{}

	for i := range verdicts {
		v := &verdicts[i]
		v.void, v.loose = p.used[v.name] && seen[v.name], p.loose[v.name]
		seen[v.name] = true
	}

	calls, wrong := p.callsOf()
	p.book.calls, p.book.verdicts, p.book.outside, p.unlogged = calls, verdicts, p.outsideOf(), unlogged

	if wrong = append(wrong, p.book.wrong()...); len(wrong) > 0 {
		return fmt.Errorf("%w: %s", world.ErrOther, strings.Join(wrong, "\n"))
	}

	return nil
}

// approveAll has rejections withdrawn and everything approved, until all that is asked for is outside.
func (p *rackPlay) approveAll(ctx context.Context) error {
	for i := range p.mine {
		m := &p.mine[i]
		if m.cha.Spec.Decision != v1alpha1.DecisionReject || !m.ended.IsZero() {
			continue
		}

		if err := p.remove(ctx, m.cha.Spec.Approver.Username, m.cha); err != nil {
			return err
		}

		m.ended = time.Now()
		p.notef("%s deletes %s", m.cha.Spec.Approver.Username, m.cha.Name)
	}

	for begin := time.Now(); ; {
		if err := p.settle(ctx); err != nil {
			return err
		}

		pch, err := p.look(ctx, false)
		if err != nil || pch == nil {
			return err
		}

		if time.Since(begin) > patience.Limit {
			return fmt.Errorf("it is still held, whoever approves it: %+v: %w", pch.Status, world.ErrOther)
		}

		if len(p.known(pch)) < int(pch.Status.Total) {
			continue // It is not known yet what one of them is.
		}

		for _, who := range []string{bertaName, claraName}[:max(1, min(2, pch.Status.Required))] {
			cha := p.decision(pch, v1alpha1.DecisionApprove)
			cha.Spec.Digest = pch.Status.Digest

			if _, err := p.decide(ctx, who, cha); err != nil && !denied(err) { // Perhaps the list is another one.
				return err
			}
		}
	}
}

// end has hans delete it, until all of it is gone.
func (p *rackPlay) end(ctx context.Context) error {
	now := time.Now()
	for _, name := range []string{p.main(), p.spare()} {
		p.book.askings = append(p.book.askings, asking{at: now, name: name, field: fieldDelete, allowed: true})
	}

	p.notef("hans deletes it")

	err := eventually(ctx, "the end", func(ctx context.Context) error {
		if err := p.hans.Delete(ctx, p.reference()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", world.ErrOther)
		}

		if left := p.outsideOf(); len(left) > 0 {
			return fmt.Errorf("it left %v behind: %w", left, world.ErrOther)
		}

		return client.IgnoreNotFound(p.admin.Delete(ctx, p.composition("", false, nil)))
	})
	if err != nil {
		return err
	}

	return p.judge()
}

// report shows all there is to know about a play that went wrong.
func (p *rackPlay) report(err error) string {
	var out strings.Builder

	fmt.Fprintf(&out, "seed %d: %v\n", p.seed, err)

	for _, line := range p.diary {
		fmt.Fprintln(&out, " ", line)
	}

	for _, name := range []string{p.main(), p.spare()} {
		for _, c := range outside.Changes(name) {
			fmt.Fprintf(&out, "  %s %s, gate%s\n", name, c, briefRecord(recordOf(c)))
		}
	}

	for _, v := range p.book.verdicts {
		fmt.Fprintf(&out, "  %+v\n", v)
	}

	return out.String()
}
