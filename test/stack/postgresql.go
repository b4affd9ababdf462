// Copyright The Kausality Authors
// SPDX-License-Identifier: Apache-2.0
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package stack

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/lib/pq" // The driver.
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kausality-io/kausality-crossplane/test/patience"
)

// Names of the processes.
const (
	postgreSQL         = "postgres"
	providerPostgreSQL = "provider-postgresql"
	psql               = "psql"
)

// Roles on the PostgreSQL server. Both may do everything.
const (
	// PostgreSQLAdmin is of whoever tries things out.
	PostgreSQLAdmin = "postgres"
	// PostgreSQLProvider is of the provider.
	PostgreSQLProvider = "provider"
)

// A PostgreSQL is the server of a stack that has one.
type PostgreSQL struct {
	port      int
	passwords map[string]string
	dir       string
}

// PostgreSQL returns the server.
func (s *Stack) PostgreSQL() PostgreSQL { return s.postgreSQL }

// URL of a database, for a role.
func (p PostgreSQL) URL(role, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, p.passwords[role]), Host: address(p.port), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Log is the file that shows what the server has executed, a JSON object a line, as its manual has it in the
// section "Using JSON-Format Log Output". A statement that has succeeded is logged once, when it has, with
// how long it took ("duration: ... statement: ..."), whether or not whoever asked for it is still there; one
// that has failed is logged as an error. Several that were sent in one string are logged together.
func (p PostgreSQL) Log() string { return filepath.Join(p.dir, "log", "statements.json") }

// startPostgreSQL starts a PostgreSQL server, and the provider for it.
func (s *Stack) startPostgreSQL(ctx context.Context) error {
	if err := s.runPostgreSQL(ctx); err != nil {
		return err
	}
	err := s.runOtherProvider(ctx, otherProvider{
		name:  providerPostgreSQL,
		path:  s.tools.Binary(providerPostgreSQL),
		crds:  s.tools.asset(providerPostgreSQL, assetCRDs),
		flags: []string{"--poll=5s"},
		port:  s.ports.providerPostgreSQL,
	})
	if err != nil {
		return err
	}
	return s.configureProviderPostgreSQL(ctx)
}

// runPostgreSQL starts the server, with data of its own.
func (s *Stack) runPostgreSQL(ctx context.Context) error {
	bin, err := postgreSQLPrograms(ctx)
	if err != nil {
		return err
	}
	// 1. A directory that the server may write.
	as, err := unprivileged()
	if err != nil {
		return err
	}
	p := PostgreSQL{port: s.ports.postgreSQL, passwords: map[string]string{PostgreSQLAdmin: rand.Text(), PostgreSQLProvider: rand.Text()}}
	if p.dir, err = s.postgreSQLDir(as); err != nil {
		return fmt.Errorf("cannot make a directory for %q: %w", postgreSQL, err)
	}
	s.postgreSQL = p
	// 2. An empty server.
	env := []string{"HOME=" + p.dir, "LC_ALL=C", "TZ=UTC"}
	data, password := filepath.Join(p.dir, "data"), filepath.Join(p.dir, "password")
	if err := os.WriteFile(password, []byte(p.passwords[PostgreSQLAdmin]), 0o600); err != nil {
		return err
	}
	if err := as.own(password); err != nil {
		return err
	}
	err = s.runCommand(ctx, command{
		name: "initdb", path: filepath.Join(bin, "initdb"), as: as, env: env,
		args: []string{
			"--pgdata=" + data, "--username=" + PostgreSQLAdmin, "--pwfile=" + password, "--auth=scram-sha-256",
			"--encoding=UTF8", "--locale=C", "--no-sync",
		},
	})
	if err != nil {
		return err
	}
	// 3. It runs, and logs what it executes.
	args := []string{"-D", data, "-p", strconv.Itoa(p.port)}
	for _, setting := range []string{
		"listen_addresses=" + loopback, "unix_socket_directories=", "fsync=off", "max_connections=200", "jit=off",
		"logging_collector=on", "log_destination=jsonlog", "log_directory=" + filepath.Dir(p.Log()), "log_filename=statements.log",
		"log_rotation_age=0", "log_rotation_size=0", "log_file_mode=0644", "log_timezone=UTC",
		"log_min_duration_statement=0",
	} {
		args = append(args, "-c", setting)
	}
	err = s.startProcess(ctx, command{
		name: postgreSQL, path: filepath.Join(bin, postgreSQL), as: as, env: env, args: args,
		stop:  syscall.SIGINT, // SIGTERM has it wait until all clients are gone.
		probe: Probe{Address: address(p.port)},
	})
	if err != nil {
		return err
	}
	if err := p.createProvider(ctx); err != nil {
		return err
	}
	return s.writePSQL()
}

// writePSQL writes a script that runs psql on the server, for who tries things out.
func (s *Stack) writePSQL() error {
	script := "#!/bin/sh\n# psql on the PostgreSQL server of the stack, as its superuser.\n" +
		"exec psql '" + s.postgreSQL.URL(PostgreSQLAdmin, "postgres") + "' \"$@\"\n"
	return os.WriteFile(s.path(psql), []byte(script), 0o700)
}

// createProvider makes the provider's role.
func (p PostgreSQL) createProvider(ctx context.Context) error {
	db, err := sql.Open("postgres", p.URL(PostgreSQLAdmin, "postgres"))
	if err != nil {
		return fmt.Errorf("cannot connect to PostgreSQL: %w", err)
	}
	defer func() { _ = db.Close() }()
	// It takes connections before it takes statements.
	err = wait.PollUntilContextTimeout(ctx, readyPoll, patience.Limit, true, func(ctx context.Context) (bool, error) {
		err := db.PingContext(ctx)
		if e := (&pq.Error{}); errors.As(err, &e) && e.Code.Name() == "cannot_connect_now" {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("cannot connect to PostgreSQL: %w", err)
	}
	_, err = db.ExecContext(ctx, "CREATE ROLE "+PostgreSQLProvider+" SUPERUSER LOGIN PASSWORD "+
		pq.QuoteLiteral(p.passwords[PostgreSQLProvider]))
	if err != nil {
		return fmt.Errorf("cannot create a role: %w", err)
	}
	return nil
}

// postgreSQLPrograms returns where the server's programs are, and installs them where there are none.
func postgreSQLPrograms(ctx context.Context) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "postgres.sh"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find PostgreSQL: %w\n%s", err, lastLines(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// postgreSQLDir makes the directory of the server: where it runs as somebody else, one that they can reach,
// which run/ says the place of.
func (s *Stack) postgreSQLDir(as *credential) (string, error) {
	link := s.path("run", postgreSQL)
	if as == nil {
		return link, os.MkdirAll(link, 0o700)
	}
	dir, err := os.MkdirTemp("", "kausality-postgresql-*")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(as.own(dir), os.Symlink(dir, link))
}

// cleanPostgreSQL removes the directory of the server, where that is not in run/. What it has executed is
// kept with the other logs.
func (s *Stack) cleanPostgreSQL() error {
	at := s.path("run", postgreSQL)
	if raw, err := os.ReadFile(PostgreSQL{dir: at}.Log()); err == nil && s.options.LogDir != "" {
		if err := os.WriteFile(filepath.Join(s.options.LogDir, "postgres-statements.json"), raw, 0o600); err != nil {
			return err
		}
	}
	dir, err := os.Readlink(at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
		return nil // There is none, or it is no link.
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// configureProviderPostgreSQL says how the provider connects, in the ProviderConfigs of both scopes.
func (s *Stack) configureProviderPostgreSQL(ctx context.Context) error {
	const name, key = providerPostgreSQL, "credentials"
	credentials, err := json.Marshal(map[string]string{
		"host": loopback, "port": strconv.Itoa(s.postgreSQL.port),
		"username": PostgreSQLProvider, "password": s.postgreSQL.passwords[PostgreSQLProvider],
	})
	if err != nil {
		return fmt.Errorf("cannot write credentials: %w", err)
	}
	err = s.applyTyped(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: CrossplaneNamespace, Name: name},
		Data:       map[string][]byte{key: credentials},
	})
	if err != nil {
		return err
	}
	config := func(group, kind string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"credentials": map[string]any{
				"source":    "Secret",
				"secretRef": map[string]any{"namespace": CrossplaneNamespace, "name": name, "key": key},
			},
		}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: kind})
		u.SetName(providerConfig)
		return u
	}
	return s.apply(ctx,
		config("postgresql.example.org", "ProviderConfig"),
		config("postgresql.m.example.org", "ClusterProviderConfig"),
	)
}
