// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"testing"
	"time"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// Queries of materialized views.
const (
	// slow takes a while, and then there is a result.
	slow = "SELECT pg_sleep(6)::text AS slow"
	// late takes a while, and then it fails.
	late = "SELECT pg_sleep(2)::text AS slept, 1 / (random() * 0)::int AS never"
)

func remade(view, query string) string {
	return `BEGIN; DROP MATERIALIZED VIEW "` + view + `"; CREATE MATERIALIZED VIEW "` + view + `" AS ` + query + `; COMMIT`
}

// TestATenantIsMadeAndChangedAsItWasAskedFor changes each kind of resource.
func TestATenantIsMadeAndChangedAsItWasAskedFor(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "changes")
	ctx := t.Context()

	// 1. All of it is made, what refers to another one after that, and late-initialized by the provider, which resolves
	// references too.
	x.made(t, map[string]any{"connections": 5})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))
	world.Must(t, x.executesAnyOrder(0,
		`CREATE ROLE "changes" LOGIN NOCREATEDB CONNECTION LIMIT 7`,
		`CREATE DATABASE "changes" TEMPLATE "template0" CONNECTION LIMIT 5`,
		`GRANT CONNECT ON DATABASE "changes" TO "changes"`,
		`CREATE MATERIALIZED VIEW "changes" AS select 1 as one`,
	)(ctx))

	world.Must(t, x.has(kindDatabase, "provider", "spec", "forProvider", "owner")(ctx))
	world.Must(t, x.has(kindDatabase, "UTF8", "spec", "forProvider", "encoding")(ctx))
	world.Must(t, x.has(kindGrant, "changes", "spec", "forProvider", "role")(ctx))

	made := x.mark(t)

	// 2. What hans asks for with a ticket is executed, one statement each.
	world.Must(t, x.change(ctx, x.hans, "T-1", map[string]any{
		"connections": int64(6), "logins": int64(3), "privileges": []any{"CONNECT", "TEMPORARY"}, "query": slow,
	}))

	// The statements first: a gate that is closed may not have been opened yet.
	once := x.executesAnyOrder(made,
		`ALTER DATABASE "changes" CONNECTION LIMIT 6`,
		`ALTER ROLE "changes" CONNECTION LIMIT 3`,
		`GRANT TEMPORARY ON DATABASE "changes" TO "changes"`,
		remade("changes", slow),
	)
	world.Must(t, scenario.Eventually(ctx, "the changes", all(once,
		x.closed(kindDatabase, kindRole, kindGrant, kindView), x.says("settled"), x.outside("connections", "6"),
		x.ticket(kindDatabase, "spec.forProvider.connectionLimit", "T-1"), x.ticket(kindView, "spec.forProvider.query", "T-1"))))
	world.Must(t, once(ctx))

	// 3. What anna asks for, or he without a ticket for what takes one, is not.
	changed := x.mark(t)

	world.Must(t, x.change(ctx, x.anna, "", map[string]any{"connections": int64(99)}))
	world.Must(t, scenario.Eventually(ctx, "a held change", x.says("1 change held: connectionLimit of Database changes (6 → 99)")))
	world.Must(t, x.change(ctx, x.hans, "T-2", map[string]any{"query": "select 2 as two"}))
	world.Must(t, scenario.Eventually(ctx, "an allowed one", all(x.closed(kindView), x.executes(changed, remade("changes", "select 2 as two")))))
	world.Must(t, x.rests(ctx, all(x.outside("connections", "6"), x.executes(changed, remade("changes", "select 2 as two")))))
}

// executesAnyOrder is as executes, for statements of several resources.
func (x tenant) executesAnyOrder(since int, want ...string) check {
	return func(context.Context) error {
		got, err := x.texts(since)
		if err != nil {
			return err
		}

		return sameOnes(got, want)
	}
}

// rests checks that something stays as it is while the provider has read
// what is outside a few times.
func (x tenant) rests(ctx context.Context, c check) error {
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if err := c(ctx); err != nil {
			return err
		}
	}

	return nil
}

// TestAChangeThatTheDatabaseRefusesLateStaysAllowedUntilItIsMade has changes fail
// that were reported as synced.
func TestAChangeThatTheDatabaseRefusesLateStaysAllowedUntilItIsMade(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "refused")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5)})
	world.Must(t, scenario.Eventually(ctx, "closed gates", all(x.closed(kindDatabase, kindRole, kindGrant, kindView), x.says("settled"))))

	made := x.mark(t)

	// 1. An owner that is not there: the gate stays open.
	world.Must(t, x.change(ctx, x.hans, "T-1", map[string]any{"owner": "refused-owner"}))
	world.Must(t, scenario.Eventually(ctx, "a refused change", all(x.open(kindDatabase, "Update"),
		x.executes(made, `failed: ALTER DATABASE "refused" OWNER TO "refused-owner"`), x.says(": in progress"))))
	world.Must(t, x.rests(ctx, all(x.open(kindDatabase, "Update"), x.unsettled)))

	// 2. Once it is there, the change is made under the same allowance.
	world.Must(t, x.execute(ctx, `CREATE ROLE "refused-owner"`))
	world.Must(t, scenario.Eventually(ctx, "the change", all(x.closed(kindDatabase), x.outside("owner", "refused-owner"), x.says("settled"),
		x.executes(made, `failed: ALTER DATABASE "refused" OWNER TO "refused-owner"`, `ALTER DATABASE "refused" OWNER TO "refused-owner"`))))

	// 3. One that fails after it was reported as synced, and never does otherwise: what is asked for next takes its place.
	changed := x.mark(t)

	world.Must(t, x.change(ctx, x.hans, "T-2", map[string]any{"query": late}))
	world.Must(t, scenario.Eventually(ctx, "a late failure", all(x.open(kindView, "Update"), x.executes(changed, "failed: "+remade("refused", late)))))
	world.Must(t, x.change(ctx, x.hans, "T-3", map[string]any{"query": "select 3 as three"}))
	world.Must(t, scenario.Eventually(ctx, "the next change", all(x.closed(kindView), x.ticket(kindView, "spec.forProvider.query", "T-3"),
		x.executes(changed, "failed: "+remade("refused", late), remade("refused", "select 3 as three")))))
}

// TestAChangeIsNotLostWithTheProvider kills it while the database is at a change.
func TestAChangeIsNotLostWithTheProvider(t *testing.T) {
	world.Long(t)

	x := newTenant(t, "killed")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5)})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))

	made := x.mark(t)

	world.Must(t, x.change(ctx, x.hans, "T-1", map[string]any{"query": slow}))
	world.Must(t, scenario.Eventually(ctx, "the statement", x.active(`"killed" AS `+slow)))
	world.Must(t, running.Process(processProvider).Kill())
	world.Must(t, x.change(ctx, x.hans, "T-2", map[string]any{"connections": int64(8)}))
	world.Must(t, running.Process(processProvider).Restart(ctx))

	// The database has gone on; the provider, which cannot know, makes it once more under the same allowance.
	world.Must(t, scenario.Eventually(ctx, "the changes", all(x.closed(kindDatabase, kindView), x.outside("connections", "8"), x.says("settled"),
		x.executesAnyOrder(made, remade("killed", slow), remade("killed", slow), `ALTER DATABASE "killed" CONNECTION LIMIT 8`),
		x.ticket(kindView, "spec.forProvider.query", "T-1"), x.ticket(kindDatabase, "spec.forProvider.connectionLimit", "T-2"))))
}

// TestADatabaseIsMadeAnewUnderADestructiveAllowanceAlone changes what PostgreSQL
// cannot change: a provider made with upjet refuses that, and so the database is
// deleted and made anew by who may do both.
func TestADatabaseIsMadeAnewUnderADestructiveAllowanceAlone(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "anew")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5), "encoding": "UTF8"})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))

	made := x.mark(t)

	// 1. A ticket is not enough.
	world.Must(t, x.change(ctx, x.hans, "T-1", map[string]any{"encoding": "LATIN1"}))
	world.Must(t, scenario.Eventually(ctx, "a held change", x.says("1 change held: encoding of Database anew (UTF8 → LATIN1)")))

	if err := x.hans.Delete(ctx, x.object(managedKind(kindDatabase))); err == nil {
		t.Error("the managed resource is deleted though nobody said that it may be destroyed")
	}

	// 2. With the word of who asks for it the gate opens for Create, and what is there stays.
	world.Must(t, x.change(ctx, x.hans, "T-2", map[string]any{"encoding": "UTF8"}))
	world.Must(t, x.destroys(ctx, tenantKind()))
	world.Must(t, x.change(ctx, x.hans, "T-2", map[string]any{"encoding": "LATIN1"}))
	world.Must(t, scenario.Eventually(ctx, "an open gate", x.open(kindDatabase, "Create")))
	world.Must(t, x.rests(ctx, all(x.outside("encoding", "UTF8"), x.executes(made), x.open(kindDatabase, "Create"))))

	// 3. Deleted by who may, it is made anew.
	world.Must(t, x.destroys(ctx, managedKind(kindDatabase)))

	old, err := x.get(ctx, managedKind(kindDatabase))
	world.Must(t, err)

	world.Must(t, scenario.Eventually(ctx, "the deletion", func(ctx context.Context) error {
		return x.hans.Delete(ctx, x.object(managedKind(kindDatabase)), uid(old))
	}))
	world.Must(t, scenario.Eventually(ctx, "another database", all(x.outside("encoding", "LATIN1"), x.closed(kindDatabase), x.says("settled"),
		x.executes(made, `DROP DATABASE "anew" WITH (FORCE)`,
			`CREATE DATABASE "anew" TEMPLATE "template0" ENCODING 'LATIN1' CONNECTION LIMIT 5`))))
}

// TestAnUpdateThatWouldDestroyIsRefusedByTheProvider allows as an update what
// PostgreSQL cannot change: nothing is executed, and the gate stays open until it is
// taken back.
func TestAnUpdateThatWouldDestroyIsRefusedByTheProvider(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "mistaken")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5), "encoding": "UTF8"})
	world.Must(t, x.allow(ctx, `
metadata: {name: tenants-mistaken}
spec:
  match: {apiGroup: tenants.example.org, kind: Tenant, fields: [spec.encoding], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: mistaken}}}
  subjects: [{kind: Group, name: app-team, mayInitiate: true}, {kind: ServiceAccount, namespace: crossplane-system, name: crossplane}]
  allow:
  - {apiGroup: sql.postgresql.m.example.org, kind: Database, mutations: [spec.forProvider.encoding]}
  - {relation: External, mutations: [Update]}
`))

	made := x.mark(t)

	world.Must(t, x.change(ctx, x.anna, "", map[string]any{"encoding": "LATIN1"}))
	world.Must(t, scenario.Eventually(ctx, "an open gate, and a refusal", all(x.open(kindDatabase, "Update"),
		x.synced(kindDatabase, "cannot change the value of the argument"))))
	world.Must(t, x.rests(ctx, all(x.open(kindDatabase, "Update"), x.executes(made), x.outside("encoding", "UTF8"))))
	world.Must(t, x.change(ctx, x.anna, "", map[string]any{"encoding": "UTF8"}))
	world.Must(t, scenario.Eventually(ctx, "a closed gate", all(x.closed(kindDatabase), x.executes(made), x.says("settled"))))
}
