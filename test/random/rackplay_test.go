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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
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

		if !fixture.Initialized(live) {
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
	steps := []chance{
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

	return one(p.rng, steps)(ctx)
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
func (p *rackPlay) known(pch *v1alpha1.PendingChange) []v1alpha1.HeldChange {
	return slices.DeleteFunc(slices.Clone(pch.Status.Changes), func(e v1alpha1.HeldChange) bool {
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
