// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"sync"

	_ "github.com/lib/pq" // The driver.
)

// Credentials say which server, and as whom.
type Credentials struct {
	Host     string `json:"host"`
	Port     string `json:"port"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// maintenance is the database that is there always.
const maintenance = "postgres"

// url returns the address of a database.
func (c Credentials) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(c.Username, c.Password), Host: net.JoinHostPort(c.Host, c.Port),
		Path: "/" + cmp.Or(database, maintenance), RawQuery: "sslmode=disable&application_name=provider-postgresql",
	}

	return u.String()
}

// Servers are those that have been connected to. The zero value is none.
type Servers struct {
	mu  sync.Mutex
	all map[Credentials]*Server
}

// Of returns the one of some credentials.
func (s *Servers) Of(c Credentials) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.all == nil {
		s.all = map[Credentials]*Server{}
	}

	if s.all[c] == nil {
		s.all[c] = &Server{credentials: c}
	}

	return s.all[c]
}

// A Server is one that the provider is connected to.
type Server struct {
	credentials Credentials

	once        sync.Once
	maintenance *sql.DB
	err         error
}

// connect returns a connection to a database, and what to do once it is not used
// any more. Those to databases that may be dropped are not kept.
func (s *Server) connect(database string) (db *sql.DB, release func(), err error) {
	if database != "" && database != maintenance {
		db, err = sql.Open("postgres", s.credentials.url(database))
		if err != nil {
			return nil, nil, fmt.Errorf("cannot connect to database %q: %w", database, err)
		}

		return db, func() { _ = db.Close() }, nil
	}

	s.once.Do(func() { s.maintenance, s.err = sql.Open("postgres", s.credentials.url("")) })

	if s.err != nil {
		return nil, nil, fmt.Errorf("cannot connect: %w", s.err)
	}

	return s.maintenance, func() {}, nil
}

// exec executes a statement in a database; "" is the one that is there always.
func (s *Server) exec(ctx context.Context, database, statement string) error {
	db, release, err := s.connect(database)
	if err != nil {
		return err
	}

	defer release()

	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("cannot execute %q: %w", statement, err)
	}

	return nil
}

// row reads one row. Where there is none, the error is sql.ErrNoRows.
func (s *Server) row(ctx context.Context, database, query string, arguments []any, into ...any) error {
	db, release, err := s.connect(database)
	if err != nil {
		return err
	}

	defer release()

	if err := db.QueryRowContext(ctx, query, arguments...).Scan(into...); err != nil {
		return fmt.Errorf("cannot read: %w", err)
	}

	return nil
}
