// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package witness_test

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/lib/pq" // The driver.

	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/stack"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// connect connects to a database as the superuser.
func connect(t *testing.T, database string) *sql.DB {
	t.Helper()

	db, err := sql.Open("postgres", running.PostgreSQL().URL(stack.PostgreSQLAdmin, database))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })

	return db
}

// TestTheLogShowsEachStatementThatChangesSomethingOnce has the server do what a
// provider may have it do, and reads what it says of that.
func TestTheLogShowsEachStatementThatChangesSomethingOnce(t *testing.T) {
	world.Long(t)

	t.Parallel()

	db := connect(t, "postgres")
	ctx := t.Context()

	for _, text := range []string{
		`CREATE ROLE "log-role"`,
		`CREATE DATABASE "log-db"`,
		`SELECT 'DROP ROLE "log-role"'`,
		"ALTER ROLE \"log-role\"\n  CONNECTION LIMIT 3",
		`BEGIN; DROP MATERIALIZED VIEW IF EXISTS "log-role"; CREATE MATERIALIZED VIEW "log-role" AS SELECT 1 AS one; COMMIT`,
		`DROP MATERIALIZED VIEW "log-role"`,
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}

	if _, err := db.ExecContext(ctx, `ALTER ROLE "log-role" IN DATABASE "log-none" SET work_mem = 1`); err == nil {
		t.Fatal("what cannot be done is done")
	}

	if _, err := db.ExecContext(ctx, `GRANT CONNECT ON DATABASE "log-db" TO "log-role"`); err != nil {
		t.Fatal(err)
	}

	// A client that is gone before its statement has ended: it is executed all the same.
	const slept = `CREATE MATERIALIZED VIEW "log-role" AS SELECT pg_sleep(6)::text AS slept`

	client := exec.CommandContext(ctx, "psql", running.PostgreSQL().URL(stack.PostgreSQLAdmin, "postgres"), "-c", slept)
	world.Must(t, client.Start())
	world.Eventually(t, "a statement that is executed", func(ctx context.Context) error {
		n := 0

		err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1`, slept).Scan(&n)
		if err == nil && n != 1 {
			err = world.ErrOther
		}

		return err
	})
	world.Must(t, client.Process.Kill())

	if err := client.Wait(); err == nil {
		t.Fatal("the client was not killed")
	}

	want := []string{
		`CREATE ROLE "log-role"`,
		"ALTER ROLE \"log-role\"\n  CONNECTION LIMIT 3",
		`BEGIN; DROP MATERIALIZED VIEW IF EXISTS "log-role"; CREATE MATERIALIZED VIEW "log-role" AS SELECT 1 AS one; COMMIT`,
		`DROP MATERIALIZED VIEW "log-role"`,
		`failed: ALTER ROLE "log-role" IN DATABASE "log-none" SET work_mem = 1`,
		`GRANT CONNECT ON DATABASE "log-db" TO "log-role"`,
		slept,
	}

	if err := scenario.Eventually(ctx, "the log", func(context.Context) error {
		all, err := statements()
		if err != nil {
			return err
		}

		var got []string

		for _, s := range all {
			if s.user != stack.PostgreSQLAdmin || !strings.Contains(s.text, `"log-role"`) {
				continue
			}

			if s.failed != "" {
				s.text = "failed: " + s.text
			}

			got = append(got, s.text)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("-want, +got:\n%s", diff)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
