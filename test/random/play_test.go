// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/test/provider/external"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// A play is one server and what becomes of it, all of which its seed decides but
// what the machine's timing does.
type play struct {
	server

	seed uint64
	rng  *rand.Rand
	seen *history
	// enforced is what becomes of edits that nobody may make.
	enforced string
	traits   []any

	// want is what hans, or who made it, asked for last, and asked all of it so
	// far; a change is in there before it is made.
	want  parameters
	asked []parameters
	// deletes is true once hans deletes it.
	deletes bool
	// drifted is true while the external object may differ from what was asked
	// for by itself.
	drifted bool
	// overwritten is true while what anna wrote over what was asked for may be
	// stored.
	overwritten bool
	diary       []string
}

// newPlay decides what a server is like.
func newPlay(c cast, seen *history, seed uint64, enforced []string) *play {
	p := &play{seed: seed, seen: seen, rng: rand.New(rand.NewPCG(seed, 0))}
	p.enforced = enforced[p.rng.IntN(len(enforced))]
	p.server = server{cast: c, namespace: p.enforced, name: fmt.Sprintf("s%d", seed)}

	p.traits = traits()[p.rng.IntN(len(traits()))]
	p.want = parameters{"size": int64(p.rng.IntN(5)), "color": p.color()}
	p.asked = []parameters{p.want}

	return p
}

// traits are those that servers have. A provider that shows nothing of its
// external objects and either works in the background or numbers no conditions
// is not among them: where it is killed for longer than a gate takes to settle,
// nothing shows that the change was not made.
func traits() [][]any {
	return [][]any{
		{},
		{},
		{"Unnumbered"},
		{"Blind"},
		{"Asynchronous"},
		{"Asynchronous"},
		{"Asynchronous", "Announcing"},
		{"Asynchronous", "Unnumbered"},
	}
}

func (p *play) color() string { return []string{"red", "green", "blue", "white"}[p.rng.IntN(4)] }

func (p *play) notef(format string, args ...any) {
	p.diary = append(p.diary, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// run plays it to the end.
func (p *play) run(ctx context.Context) error {
	// 1. It is made, perhaps with trouble.
	if p.rng.IntN(3) == 0 {
		p.makeTrouble()
	}

	p.notef("%s server %v with %v", p.enforced, p.want, p.traits)

	if err := p.make(ctx, p.traits, p.want); err != nil {
		return err
	}

	if p.rng.IntN(5) > 0 {
		if err := p.waitUntilSettled(ctx); err != nil {
			return err
		}
	}

	// 2. Things happen.
	for range 3 + p.rng.IntN(5) {
		if err := p.step(ctx); err != nil {
			return err
		}
	}

	// 3. hans's last word is what is there in the end, after any trouble.
	if err := p.edit(ctx, parameters{"size": int64(100 + p.rng.IntN(100)), "color": p.color(), "tags": nil}); err != nil {
		return err
	}

	p.revert()

	if err := eventually(ctx, "the last change", p.arrived); err != nil {
		return err
	}

	// 4. Nothing follows that is not allowed.
	if err := p.judge(); err != nil {
		return err
	}

	// 5. He deletes it.
	if err := p.end(ctx); err != nil {
		return err
	}

	return p.judge()
}

// chance is something that may happen, and how often beside the others.
type chance struct {
	weight int
	do     func(context.Context) error
}

// one is one of them.
func one(rng *rand.Rand, of []chance) func(context.Context) error {
	sum := 0
	for _, c := range of {
		sum += c.weight
	}

	for n := rng.IntN(sum); ; {
		if n -= of[0].weight; n < 0 {
			return of[0].do
		}

		of = of[1:]
	}
}

// step lets one thing happen.
func (p *play) step(ctx context.Context) error {
	steps := []chance{
		{9, p.editSome},
		{5, p.takeBack},
		{4, func(context.Context) error { p.makeTrouble(); return nil }},
		{2, func(context.Context) error { p.drift(); return nil }},
		{4, p.intrude},
		{2, p.pryOpen},
		{2, p.forge},
		{2, p.annotate},
		{1, p.tryToDelete},
		{1, p.pause},
		{6, p.rest},
		{4, p.waitUntilSettled},
	}

	return one(p.rng, steps)(ctx)
}

// edit has hans change something, and remembers that first.
func (p *play) edit(ctx context.Context, change parameters) error {
	p.want = maps.Clone(p.want)

	for key, value := range change {
		if value == nil {
			delete(p.want, key)
		} else {
			p.want[key] = value
		}
	}

	p.asked = append(p.asked, p.want)
	p.notef("hans asks for %v", change)

	if err := p.change(ctx, change); err != nil {
		return err
	}

	if len(change) == 3 {
		p.overwritten = false // He asked for all there is.
	}

	return nil
}

// editSome has hans change one thing or two.
func (p *play) editSome(ctx context.Context) error {
	size, _ := p.want["size"].(int64)
	change := parameters{"size": (size + 1 + int64(p.rng.IntN(4))) % 50}

	switch p.rng.IntN(5) {
	case 0:
		change["color"] = p.color()
	case 1:
		change["tags"] = map[string]any{"tier": p.color()}
	case 2:
		change["tags"] = nil // Perhaps there are none.
	}

	return p.edit(ctx, change)
}

// takeBack has hans ask for what he asked for before, all of it.
func (p *play) takeBack(ctx context.Context) error {
	was := p.asked[p.rng.IntN(len(p.asked))]
	if same(was, p.want) {
		return nil
	}

	change := maps.Clone(was)
	if _, ok := change["tags"]; !ok {
		change["tags"] = nil
	}

	return p.edit(ctx, change)
}

// makeTrouble makes trouble outside.
func (p *play) makeTrouble() {
	t := external.Trouble{Fail: p.rng.IntN(4), Late: p.rng.IntN(3) == 0, Slow: time.Duration(p.rng.IntN(350)) * time.Millisecond}
	p.notef("trouble %+v", t)
	outside.Trouble(p.name, t)
}

// drift has the external object change by itself.
func (p *play) drift() {
	to := parameters{"size": int64(1000 + p.rng.IntN(1000)), "color": "drifted"}
	p.drifted = true
	p.notef("it drifts to %v", to)
	outside.Drift(p.name, to)
}

// revert has somebody revert what changed by itself outside: until then no gate opens for a change that would do so.
func (p *play) revert() {
	if !p.drifted {
		return
	}

	to := parameters{}
	for _, key := range []string{"size", "color"} {
		if v, ok := p.want[key]; ok {
			to[key] = v
		}
	}

	p.drifted = false
	p.notef("it is reverted to %v", to)
	outside.Drift(p.name, to)
}

// rest lets time pass.
func (p *play) rest(context.Context) error {
	d := time.Duration(p.rng.IntN(500)) * time.Millisecond
	p.notef("%s pass", d)
	time.Sleep(d)

	return nil
}

// waitUntilSettled waits until what hans asked for has arrived.
func (p *play) waitUntilSettled(ctx context.Context) error {
	p.revert()
	p.notef("wait")

	if err := eventually(ctx, "the change", p.arrived); err != nil {
		return err
	}

	p.notef("settled")

	return nil
}

// arrived checks that all is done: outside, where that can be known, and then in
// the API server.
func (p *play) arrived(ctx context.Context) error {
	if !p.drifted && !p.overwritten {
		if err := p.shows(p.want); err != nil {
			return err
		}
	}

	return p.closed(ctx)
}

// judge compares the calls with what was allowed.
func (p *play) judge() error {
	wrong := p.seen.wrong(p.name)

	for _, c := range outside.Changes(p.name) {
		if w := p.objection(c); w != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", w, c))
		}
	}

	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s", world.ErrOther, strings.Join(wrong, "\n"))
	}

	return nil
}

// objection says what is wrong with a call.
func (p *play) objection(c external.Call) string {
	if !p.granted(c) {
		return "a call without an allowance"
	}

	switch c.Verb {
	case external.Delete:
		if !p.deletes || !c.Managed.Deleting {
			return "a deletion that is not allowed"
		}
	default:
		if !slices.ContainsFunc(p.asked, func(a parameters) bool { return same(a, c.Payload) }) {
			return "a payload that is not allowed"
		}
	}

	return ""
}

// granted reports whether the managed resource had an allowance for a call when the
// provider made it: one its gate was open for, or that it was made with.
func (p *play) granted(c external.Call) bool {
	rec := recordOf(c)
	if rec.State == "" {
		return slices.ContainsFunc(allowancesOf(c), func(a v1alpha1.Allowance) bool { return grants(a, string(c.Verb)) })
	}

	return slices.Contains(management.Acting(c.Managed.Policies), string(c.Verb)) && granted(&rec, string(c.Verb), rec.Consumed)
}

// report shows all there is to know about a play that went wrong.
func (p *play) report(err error) string {
	var out strings.Builder

	fmt.Fprintf(&out, "seed %d: %v\n", p.seed, err)

	for _, line := range p.diary {
		fmt.Fprintln(&out, " ", line)
	}

	for _, c := range outside.Changes(p.name) {
		fmt.Fprintf(&out, "  %s, gate%s\n", c, briefRecord(recordOf(c)))
	}

	return out.String() + brief(p.seen.versions(p.name))
}
