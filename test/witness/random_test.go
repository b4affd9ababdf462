// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// envRuns names the environment variable that says how many plays there are;
// world.EnvSeed is the seed of the first one, the others' follow.
const envRuns = "KAUSALITY_RUNS"

const (
	// runs is how many plays there are by default, and atOnce how many of them at
	// one time.
	runs   = 20
	atOnce = 10
	// unasked is where numbers begin that nobody asks for who may, drifting where
	// those do that somebody sets outside.
	unasked  = 10_000
	drifting = 20_000
)

// TestEachStatementOfTheProviderWasAskedFor plays tenants at random while the
// provider and the manager are killed, and then has PostgreSQL's own log be the
// witness: each statement that changed something belongs to one trace of a managed
// resource; none is without, and none was executed twice for the same allowance
// unless the provider was killed meanwhile.
//
// KAUSALITY_SEED=n plays the tenant of seed n and those that follow it, of which
// there are KAUSALITY_RUNS.
func TestEachStatementOfTheProviderWasAskedFor(t *testing.T) {
	world.Long(t)

	seed, count := world.Number(t, world.EnvSeed, rand.Uint64()>>32), world.Number(t, envRuns, runs)
	t.Logf("%s=%d %s=%d", world.EnvSeed, seed, envRuns, count)

	p := newPeople(t)
	before, err := statements()
	world.Must(t, err)

	seen := follow(t.Context(), p.admin)
	disorder := &chaos{rng: rand.New(rand.NewPCG(seed, 1))}

	// 1. Processes come and go for as long as it lasts.
	ctx, calm := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- disorder.run(ctx) }()

	// 2. All plays are played.
	var (
		group errgroup.Group
		mu    sync.Mutex
		plays []*play
	)

	group.SetLimit(atOnce)

	for i := range count {
		group.Go(func() error {
			y := newPlay(t, p, seed+i)

			err := y.run(t.Context())
			if err != nil {
				t.Errorf("%s=%d: %v\n%s\n%s", world.EnvSeed, y.seed, err, strings.Join(y.diary, "\n"), y.dump(t.Context()))
			}

			mu.Lock()
			defer mu.Unlock()

			plays = append(plays, y)

			return nil
		})
	}

	_ = group.Wait()

	calm()
	world.Must(t, <-ended)

	// 3. The witness.
	executed, err := statements()
	world.Must(t, err)

	for _, s := range executed[len(before):] {
		if s.user == stack.PostgreSQLProvider && !slices.ContainsFunc(plays, func(y *play) bool { return strings.Contains(s.text, `"`+y.name+`"`) }) {
			t.Errorf("of no play: %s", s)
		}
	}

	matched := 0

	for i, y := range plays {
		j := &judge{name: y.name, seen: seen.history, asked: y.asked, killed: disorder.killed}

		if wrong := j.judge(executed); len(wrong) > 0 {
			t.Errorf("%s=%d: not asked for:\n%s\n%s\nall of it:\n%s", world.EnvSeed, y.seed, strings.Join(wrong, "\n"), strings.Join(y.diary, "\n"),
				strings.Join(j.matched, "\n"))
		}

		matched += len(j.matched)

		if i == 0 {
			t.Logf("the log of one play, beside its traces:\n%s", strings.Join(j.matched, "\n"))
		}
	}

	if matched < 4*len(plays) {
		t.Errorf("%d statements of %d plays: each makes four resources", matched, len(plays))
	}

	t.Logf("%d plays, %d statements matched; the provider was killed %d times\n%s", len(plays), matched, len(disorder.killed), seen.durations())
}

// chaos kills processes and starts them again.
type chaos struct {
	rng    *rand.Rand
	killed []time.Time
}

// run does so until the context ends; then all of them run.
func (c *chaos) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(4+c.rng.IntN(8)) * time.Second):
		}

		name := []string{processProvider, processProvider, "kausality-manager"}[c.rng.IntN(3)]
		process := running.Process(name)

		if name == processProvider {
			c.killed = append(c.killed, time.Now())
		}

		if err := process.Kill(); err != nil {
			return err
		}

		time.Sleep(time.Duration(c.rng.IntN(1500)) * time.Millisecond)

		if err := process.Restart(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// A play is a tenant and what becomes of it.
type play struct {
	tenant

	seed  uint64
	rng   *rand.Rand
	asked []asking
	diary []string
	// want is what was asked for last, and is to be outside.
	want map[string]string
	// connections are what was asked for last.
	connections string
	next        int
	// approver may approve everything.
	approver world.Approver
}

func newPlay(t *testing.T, p people, seed uint64) *play {
	t.Helper()

	name := fmt.Sprintf("p%d", seed)

	return &play{
		tenant: tenant{people: p, name: name, namespace: "default"}, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)),
		want: map[string]string{"connections": "5"}, connections: "5",
		approver: world.Approver{Client: world.ConnectTyped(t, running.Config())},
	}
}

func (y *play) notef(format string, args ...any) {
	y.diary = append(y.diary, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// run plays it to the end.
func (y *play) run(ctx context.Context) error {
	u := y.object(tenantKind())
	u.Object["spec"] = map[string]any{"connections": int64(5)}

	y.notef("hans makes %s", y.name)

	if err := y.insist(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(y.hans.Create(ctx, u.DeepCopy())) }); err != nil {
		return err
	}

	if err := y.wait(ctx, "a tenant", all(y.ready, y.shut(kindDatabase))); err != nil {
		return err
	}

	steps := []func(context.Context) error{
		y.ask, y.ask, y.ask, y.ask, y.trespass, y.handle, y.drift, y.fail, y.rest,
	}

	for range 4 + y.rng.IntN(5) {
		if err := steps[y.rng.IntN(len(steps))](ctx); err != nil {
			return err
		}
	}

	// What was asked for last is there in the end.
	if err := y.ask(ctx); err != nil {
		return err
	}

	if err := y.wait(ctx, "the last change", y.arrived); err != nil {
		return err
	}

	return y.end(ctx)
}

// wait waits, and does for a provider that was killed at the wrong time what its
// message says.
func (y *play) wait(ctx context.Context, what string, c check) error {
	return scenario.Eventually(ctx, what, func(ctx context.Context) error {
		err := c(ctx)
		if err == nil {
			return nil
		}

		y.approveDrift(ctx)

		for _, kind := range []string{kindDatabase, kindRole, kindGrant, kindView} {
			if y.synced(kind, "cannot determine creation result")(ctx) == nil {
				y.notef("%s was being made when the provider was killed", kind)

				_ = y.admin.Patch(ctx, y.object(managedKind(kind)),
					world.Merge(`{"metadata": {"annotations": {"crossplane.io/external-create-pending": null}}}`))
			}
		}

		return err
	})
}

// approveDrift approves what was changed outside, where that keeps the gate closed for a comment that was asked for
// since: it is listed as a pending change of the tenant.
func (y *play) approveDrift(ctx context.Context) {
	comment, asked := y.want["comment"]
	if !asked || y.outside("comment", comment)(ctx) == nil {
		return
	}

	list := &v1alpha1.PendingChangeList{}
	if y.approver.List(ctx, list, client.InNamespace(y.namespace)) != nil {
		return
	}

	drift := func(c v1alpha1.HeldChange) bool {
		return c.Cause.Type == v1alpha1.CauseDrift && c.Ref.Kind == kindDatabase
	}

	for _, pch := range list.Items {
		if pch.Spec.ObjectRef.Name != y.name || !slices.ContainsFunc(pch.Status.Changes, drift) {
			continue
		}

		name := fmt.Sprintf("%s-drift-%d", y.name, y.next)
		at := time.Now()

		if y.approver.Decide(ctx, &pch, name, v1alpha1.DecisionApprove, drift) == nil {
			y.asked = append(y.asked, asking{at: at, approval: name})
			y.notef("the drift is approved")
		}
	}
}

// ready checks that the tenant is, and was built up.
func (y *play) ready(ctx context.Context) error {
	u, err := y.get(ctx, tenantKind())
	if err == nil && !fixture.Initialized(u) {
		err = fmt.Errorf("%q is not initialized: %w", u.GetName(), world.ErrOther)
	}

	return err
}

// shut checks that the gate of a managed resource is closed, and that its provider has seen that: until then it may be at work by what
// its cache has.
func (y *play) shut(kind string) check {
	return func(ctx context.Context) error {
		u, err := y.get(ctx, managedKind(kind))
		if err != nil {
			return err
		}

		if len(management.Acting(policies(u))) > 0 {
			return fmt.Errorf("the gate of %s is open: %w", kind, world.ErrOther)
		}

		if c, _ := resource.ConditionOf(u, resource.ConditionSynced); c.ObservedGeneration > 0 && c.ObservedGeneration < u.GetGeneration() {
			return fmt.Errorf("the provider of %s has seen generation %d, not %d: %w", kind, c.ObservedGeneration, u.GetGeneration(), world.ErrOther)
		}

		return nil
	}
}

// arrived checks that what was asked for is outside.
func (y *play) arrived(ctx context.Context) error {
	for column, want := range y.want {
		if err := y.outside(column, want)(ctx); err != nil {
			return err
		}
	}

	return nil
}

// ask has hans ask for something with a ticket of its own.
func (y *play) ask(ctx context.Context) error {
	y.next++

	n := int64(100 + y.next)
	ticket := fmt.Sprintf("%s-%d", strings.ToUpper(y.name), y.next)

	change := []struct {
		field string
		value any
		deed  deed
	}{
		{"connections", n, deed{kindDatabase, "spec.forProvider.connectionLimit", strconv.FormatInt(n, 10)}},
		{"connections", n, deed{kindDatabase, "spec.forProvider.connectionLimit", strconv.FormatInt(n, 10)}},
		{"comment", ticket, deed{kindDatabase, "spec.forProvider.comment", ticket}},
		{"logins", n, deed{kindRole, "spec.forProvider.connectionLimit", strconv.FormatInt(n, 10)}},
		{"query", y.query(n), deed{kindView, "spec.forProvider.query", y.query(n)}},
	}[y.rng.IntN(5)]

	y.notef("hans asks for %s=%v, %s", change.field, change.value, ticket)
	y.asked = append(y.asked, asking{deed: change.deed, at: time.Now(), ticket: ticket})

	switch change.field {
	case "connections":
		y.connections = fmt.Sprint(change.value)
		y.want["connections"] = y.connections
	case "comment":
		y.want["comment"] = ticket
	}

	if err := y.insist(ctx, func(ctx context.Context) error {
		return y.change(ctx, y.hans, ticket, map[string]any{change.field: change.value})
	}); err != nil {
		return err
	}

	if y.rng.IntN(2) == 0 {
		return nil
	}

	return y.wait(ctx, "the change", y.arrived)
}

// query is one that takes a while, or not.
func (y *play) query(n int64) string {
	if n%2 == 0 {
		return fmt.Sprintf("SELECT pg_sleep(2)::text AS slept, %d AS n", n)
	}

	return fmt.Sprintf("SELECT %d AS n", n)
}

// insist tries until the API server takes it: the webhook may be away.
func (y *play) insist(ctx context.Context, do func(context.Context) error) error {
	return scenario.Eventually(ctx, "a request", do)
}

// trespass has anna ask for what she may not.
func (y *play) trespass(ctx context.Context) error {
	y.next++
	n := int64(unasked + y.next)

	y.notef("anna asks for logins=%d", n)

	return y.insist(ctx, func(ctx context.Context) error {
		return y.change(ctx, y.anna, "", map[string]any{"logins": n})
	})
}

// handle has anna try to do it by hand: change a managed resource, open its gate,
// delete it. All is held or refused.
func (y *play) handle(ctx context.Context) error {
	y.next++
	kind := []string{kindDatabase, kindRole}[y.rng.IntN(2)]

	y.notef("anna handles %s", kind)

	_ = y.anna.Patch(ctx, y.object(managedKind(kind)), world.Merge(fmt.Sprintf(`{"spec": {"forProvider": {"connectionLimit": %d}}}`, unasked+y.next)))
	_ = y.anna.Patch(ctx, y.object(managedKind(kind)), world.Merge(`{"spec": {"managementPolicies": ["*"]}}`))
	_ = y.anna.Delete(ctx, y.object(managedKind(kind)))

	return nil
}

// drift has somebody change the database while its gate is closed, and perhaps a
// window put that right.
func (y *play) drift(ctx context.Context) error {
	if err := y.wait(ctx, "a closed gate", all(y.arrived, y.shut(kindDatabase))); err != nil {
		return err
	}

	y.next++
	y.notef("the database drifts")

	if err := y.execute(ctx, fmt.Sprintf(`ALTER DATABASE %q CONNECTION LIMIT %d`, y.name, drifting+y.next)); err != nil {
		return err
	}

	delete(y.want, "connections") // It stays until something of the database is asked for.

	if y.rng.IntN(2) == 0 {
		return nil
	}

	window := fmt.Sprintf("%s-window-%d", y.name, y.next)

	y.notef("a window, %s", window)
	y.asked = append(y.asked, asking{at: time.Now(), window: window})

	// One whose making was interrupted counts as one that was there before, which no window touches.
	u, err := y.get(ctx, managedKind(kindDatabase))
	if err != nil {
		return err
	}

	if !managed.Existing(u) {
		y.want["connections"] = y.connections
	}

	return y.insist(ctx, func(ctx context.Context) error { return y.openWindow(ctx, window) })
}

// fail has hans ask for what PostgreSQL refuses late, and then for something else.
func (y *play) fail(ctx context.Context) error {
	y.next++
	ticket := fmt.Sprintf("%s-%d", strings.ToUpper(y.name), y.next)
	query := fmt.Sprintf("SELECT pg_sleep(1)::text AS slept, %d / (random() * 0)::int AS never", y.next)

	y.notef("hans asks for what fails, %s", ticket)
	y.asked = append(y.asked, asking{deed: deed{kindView, "spec.forProvider.query", query}, at: time.Now(), ticket: ticket})

	if err := y.insist(ctx, func(ctx context.Context) error {
		return y.change(ctx, y.hans, ticket, map[string]any{"query": query})
	}); err != nil {
		return err
	}

	time.Sleep(time.Duration(y.rng.IntN(4000)) * time.Millisecond)

	y.next++
	n := int64(1001 + 2*y.next) // Which nothing else asks for.
	ticket = fmt.Sprintf("%s-%d", strings.ToUpper(y.name), y.next)

	y.notef("hans asks for what does not fail, %s", ticket)
	y.asked = append(y.asked, asking{deed: deed{kindView, "spec.forProvider.query", y.query(n)}, at: time.Now(), ticket: ticket})

	return y.insist(ctx, func(ctx context.Context) error {
		return y.change(ctx, y.hans, ticket, map[string]any{"query": y.query(n)})
	})
}

func (y *play) rest(context.Context) error {
	time.Sleep(time.Duration(y.rng.IntN(4000)) * time.Millisecond)

	return nil
}

// end has hans delete it, who may.
func (y *play) end(ctx context.Context) error {
	y.notef("hans deletes it")

	if err := y.insist(ctx, func(ctx context.Context) error {
		return y.destroys(ctx, tenantKind())
	}); err != nil {
		return err
	}

	if err := y.insist(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(y.hans.Delete(ctx, y.object(tenantKind())))
	}); err != nil {
		return err
	}

	return y.wait(ctx, "the end", all(y.gone(tenantKind()), y.outside("connections", ""), y.gone(managedKind(kindDatabase)),
		y.gone(managedKind(kindRole)), y.gone(managedKind(kindGrant)), y.gone(managedKind(kindView))))
}
