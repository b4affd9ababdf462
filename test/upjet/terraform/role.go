// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/lib/pq"
)

// role is a role. PostgreSQL drops none that owns something.
func role() *schema.Resource {
	return &schema.Resource{
		Description:   "A role.",
		CreateContext: on(then(createRole, readRole)),
		ReadContext:   on(readRole),
		UpdateContext: on(then(alter(roleAlterations()), readRole)),
		DeleteContext: on(func(ctx context.Context, s *Server, d *schema.ResourceData) error {
			return s.exec(ctx, "", "DROP ROLE "+name(d))
		}),
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		Schema: map[string]*schema.Schema{
			"name": {Type: schema.TypeString, Required: true, ForceNew: true, Description: "Name of the role."},
			"login": {
				Type: schema.TypeBool, Optional: true, Default: false, Description: "Whether it may log in.",
			},
			"create_database": {
				Type: schema.TypeBool, Optional: true, Default: false, Description: "Whether it may make databases.",
			},
			"connection_limit": {
				Type: schema.TypeInt, Optional: true, Computed: true,
				Description: "How many connections it may have at once; -1 is any number of them, and the default.",
			},
			"password": {
				Type: schema.TypeString, Optional: true, Sensitive: true, Description: "What it logs in with.",
			},
		},
	}
}

func createRole(ctx context.Context, s *Server, d *schema.ResourceData) error {
	options := []string{may(d, "login", "LOGIN"), may(d, "create_database", "CREATEDB")}

	if limit, ok := d.GetOk("connection_limit"); ok {
		options = append(options, fmt.Sprintf("CONNECTION LIMIT %v", limit))
	}

	if text(d, "password") != "" {
		options = append(options, password(d))
	}

	if err := s.exec(ctx, "", "CREATE ROLE "+name(d)+" "+strings.Join(options, " ")); err != nil {
		return err
	}

	d.SetId(text(d, "name"))

	return nil
}

func roleAlterations() []alteration {
	option := func(of func(d *schema.ResourceData) string) func(*schema.ResourceData) string {
		return func(d *schema.ResourceData) string { return "ALTER ROLE " + name(d) + " " + of(d) }
	}

	return []alteration{
		{"login", option(func(d *schema.ResourceData) string { return may(d, "login", "LOGIN") })},
		{"create_database", option(func(d *schema.ResourceData) string { return may(d, "create_database", "CREATEDB") })},
		{"connection_limit", option(func(d *schema.ResourceData) string {
			return fmt.Sprintf("CONNECTION LIMIT %v", d.Get("connection_limit"))
		})},
		{"password", option(password)},
	}
}

// may writes whether a role may do something, as an option of a statement.
func may(d *schema.ResourceData, attribute, option string) string {
	if yes, ok := d.Get(attribute).(bool); ok && yes {
		return option
	}

	return "NO" + option
}

func password(d *schema.ResourceData) string {
	if text(d, "password") == "" {
		return "PASSWORD NULL"
	}

	return "PASSWORD " + pq.QuoteLiteral(text(d, "password"))
}

func readRole(ctx context.Context, s *Server, d *schema.ResourceData) error {
	var (
		login, createDatabase bool
		limit                 int
	)

	err := s.row(ctx, "", "SELECT rolcanlogin, rolcreatedb, rolconnlimit FROM pg_roles WHERE rolname = $1",
		[]any{d.Id()}, &login, &createDatabase, &limit)
	if errors.Is(err, sql.ErrNoRows) {
		d.SetId("")

		return nil
	}

	if err != nil {
		return fmt.Errorf("cannot read role %q: %w", d.Id(), err)
	}

	return set(d, map[string]any{
		"name": d.Id(), "login": login, "create_database": createDatabase, "connection_limit": limit,
	})
}
