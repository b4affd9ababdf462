// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestATenantIsDeletedWithAGrantAlone deletes one, to the end.
func TestATenantIsDeletedWithAGrantAlone(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "ends")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5)})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))

	made := x.mark(t)

	// 1. Deleted without a grant, all that is outside stays.
	for _, kind := range []string{kindDatabase, kindRole, kindGrant, kindView} {
		if err := x.hans.Delete(ctx, x.object(managedKind(kind))); err == nil {
			t.Errorf("%s is deleted", kind)
		}
	}

	world.Must(t, x.rests(ctx, all(x.executes(made), x.closed(kindDatabase, kindRole, kindGrant, kindView))))

	// 2. With one, all of it goes. What is dropped with the database it is in needs no statement of its own.
	world.Must(t, x.destroys(ctx, tenantKind()))
	world.Must(t, x.hans.Delete(ctx, x.object(tenantKind())))
	world.Must(t, scenario.Eventually(ctx, "the end", all(x.gone(tenantKind()), x.gone(managedKind(kindDatabase)), x.gone(managedKind(kindRole)),
		x.gone(managedKind(kindGrant)), x.gone(managedKind(kindView)), x.outside("connections", ""), x.executed(made,
			`DROP DATABASE "ends" WITH (FORCE)`, `DROP ROLE "ends"`))))
}

// executed checks that statements are among those that succeeded.
func (x tenant) executed(since int, want ...string) check {
	return func(context.Context) error {
		got, err := x.texts(since)
		if err != nil {
			return err
		}

		for _, w := range want {
			if n := count(got, w); n != 1 {
				return fmt.Errorf("%d times %s among %q: %w", n, w, got, world.ErrOther)
			}
		}

		return nil
	}
}

// TestADeletedNamespaceTakesNoDatabaseAlong deletes one that nobody may.
func TestADeletedNamespaceTakesNoDatabaseAlong(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "spaces")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5)})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))

	made := x.mark(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}

	world.Must(t, client.IgnoreNotFound(x.anna.Delete(ctx, ns)))
	world.Must(t, x.rests(ctx, all(x.executes(made), x.outside("connections", "5"))))
}

// TestDriftIsRepairedInAWindow has somebody change what is outside.
func TestDriftIsRepairedInAWindow(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "drifts")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5)})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))

	made := x.mark(t)

	world.Must(t, x.execute(ctx, `ALTER DATABASE "drifts" CONNECTION LIMIT 77`))
	world.Must(t, x.rests(ctx, all(x.executes(made), x.outside("connections", "77"), x.closed(kindDatabase))))
	world.Must(t, x.window(ctx, t, "drifts-repair"))
	world.Must(t, scenario.Eventually(ctx, "a repair", all(x.outside("connections", "5"), x.closed(kindDatabase, kindRole, kindGrant, kindView),
		x.executes(made, `ALTER DATABASE "drifts" CONNECTION LIMIT 5`))))

	// Once: what drifts after that stays.
	world.Must(t, x.execute(ctx, `ALTER DATABASE "drifts" CONNECTION LIMIT 78`))
	world.Must(t, x.rests(ctx, all(x.executes(made, `ALTER DATABASE "drifts" CONNECTION LIMIT 5`), x.outside("connections", "78"))))
}

// TestADatabaseThatIsDroppedIsMadeByNoUpdate has somebody drop the database. Its provider would make it with the next update.
func TestADatabaseThatIsDroppedIsMadeByNoUpdate(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "dropped")
	ctx := t.Context()

	x.made(t, map[string]any{"connections": int64(5)})
	world.Must(t, scenario.Eventually(ctx, "closed gates", x.closed(kindDatabase, kindRole, kindGrant, kindView)))

	made := x.mark(t)

	// 1. It is told, and an update that is allowed waits.
	world.Must(t, x.execute(ctx, `DROP DATABASE "dropped" WITH (FORCE)`))
	world.Must(t, scenario.Eventually(ctx, "word of it", x.synced(kindDatabase, "does not exist")))
	world.Must(t, x.change(ctx, x.hans, "T-1", map[string]any{"connections": int64(6)}))
	world.Must(t, scenario.Eventually(ctx, "the change", x.ticket(kindDatabase, "spec.forProvider.connectionLimit", "T-1")))
	world.Must(t, x.rests(ctx, all(x.executes(made), x.open(kindDatabase))))

	// 2. What may create makes it, and nothing else.
	world.Must(t, x.allow(ctx, `
metadata: {name: tenants-dropped}
spec:
  match: {apiGroup: tenants.example.org, kind: Tenant, fields: [spec.connections], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: dropped}}}
  subjects: [{kind: Group, name: app-team, mayInitiate: true}, {kind: ServiceAccount, namespace: crossplane-system, name: crossplane}]
  allow:
  - {apiGroup: sql.postgresql.m.example.org, kind: Database, mutations: [spec.forProvider.connectionLimit]}
  - {relation: External, mutations: [Create, Update]}
`))
	world.Must(t, x.change(ctx, x.anna, "", map[string]any{"connections": int64(7)}))
	world.Must(t, scenario.Eventually(ctx, "another database", all(x.outside("connections", "7"), x.closed(kindDatabase),
		x.executes(made, `CREATE DATABASE "dropped" OWNER "provider" TEMPLATE "template0" ENCODING 'UTF8' CONNECTION LIMIT 7`))))
}

// TestWhatIsGivenForTheBeginningOnlyIsNotPutBack changes outside what initProvider
// gave, in a resource that does not late-initialize it, and opens its gate for
// another field.
func TestWhatIsGivenForTheBeginningOnlyIsNotPutBack(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "begins")
	ctx := t.Context()

	role := x.object(managedKind(kindRole))
	role.Object["spec"] = map[string]any{
		"managementPolicies": []any{"Observe", "Create", "Update", "Delete"},
		"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "default"},
		"forProvider":        map[string]any{"login": true},
		"initProvider":       map[string]any{"connectionLimit": int64(7)},
	}

	world.Must(t, x.allow(ctx, `
metadata: {name: roles-login}
spec:
  match: {apiGroup: sql.postgresql.m.example.org, kind: Role, fields: [spec.forProvider.login], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: begins}}}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{relation: External, mutations: [Update]}]
`))
	world.Must(t, x.hans.Create(ctx, role))
	world.Must(t, scenario.Eventually(ctx, "a role", all(x.closed(kindRole), x.executes(0, `CREATE ROLE "begins" LOGIN NOCREATEDB CONNECTION LIMIT 7`))))
	world.Must(t, x.execute(ctx, `ALTER ROLE "begins" CONNECTION LIMIT 70`))
	world.Must(t, x.hans.Patch(ctx, x.object(managedKind(kindRole)), world.Merge(`{"spec": {"forProvider": {"login": false}}}`)))
	world.Must(t, scenario.Eventually(ctx, "the change", all(x.closed(kindRole),
		x.executes(0, `CREATE ROLE "begins" LOGIN NOCREATEDB CONNECTION LIMIT 7`, `ALTER ROLE "begins" NOLOGIN`))))
	world.Must(t, x.rests(ctx, x.closed(kindRole)))
}

// TestAPasswordIsChangedOutside changes what no status shows: the reference to a
// Secret.
func TestAPasswordIsChangedOutside(t *testing.T) {
	world.Long(t)

	t.Parallel()

	x := newTenant(t, "password")
	ctx := t.Context()

	for _, version := range []string{"one", "two"} {
		world.Must(t, x.admin.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: version}, StringData: map[string]string{"password": "secret-" + version},
		}))
	}

	role := x.object(managedKind(kindRole))
	role.Object["spec"] = map[string]any{
		"providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "default"},
		"forProvider":       map[string]any{"login": true, "passwordSecretRef": map[string]any{"name": "one", "key": "password"}},
	}

	world.Must(t, x.allow(ctx, `
metadata: {name: roles-password}
spec:
  match: {apiGroup: sql.postgresql.m.example.org, kind: Role, fields: [spec.forProvider.passwordSecretRef], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: password}}}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{relation: External, mutations: [Update]}]
`))
	world.Must(t, x.hans.Create(ctx, role))
	world.Must(t, scenario.Eventually(ctx, "a role", all(x.closed(kindRole), x.executes(0, `CREATE ROLE "password" LOGIN NOCREATEDB PASSWORD 'secret-one'`))))

	// Another Secret by somebody else is held.
	world.Must(t, x.anna.Patch(ctx, x.object(managedKind(kindRole)), world.Merge(`{"spec": {"forProvider": {"passwordSecretRef": {"name": "two"}}}}`)))
	world.Must(t, x.holds(ctx, kindRole, "spec.forProvider.passwordSecretRef.name"))
	world.Must(t, x.has(kindRole, "one", "spec", "forProvider", "passwordSecretRef", "name")(ctx))
	world.Must(t, x.rests(ctx, x.closed(kindRole)))
	world.Must(t, x.executes(1)(ctx))

	world.Must(t, x.hans.Patch(ctx, x.object(managedKind(kindRole)), world.Merge(`{"spec": {"forProvider": {"passwordSecretRef": {"name": "two"}}}}`)))
	world.Must(t, scenario.Eventually(ctx, "the change", all(x.closed(kindRole), x.executes(1, `ALTER ROLE "password" PASSWORD 'secret-two'`))))
}
