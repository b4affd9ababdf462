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

// database is a database. Its encoding and the template it is made of cannot be
// changed.
func database() *schema.Resource {
	return &schema.Resource{
		Description:   "A database.",
		CreateContext: on(then(createDatabase, readDatabase)),
		ReadContext:   on(readDatabase),
		UpdateContext: on(then(alter(databaseAlterations()), readDatabase)),
		DeleteContext: on(func(ctx context.Context, s *Server, d *schema.ResourceData) error {
			return s.exec(ctx, "", "DROP DATABASE "+name(d)+" WITH (FORCE)")
		}),
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		Schema: map[string]*schema.Schema{
			"name": {Type: schema.TypeString, Required: true, ForceNew: true, Description: "Name of the database."},
			"owner": {
				Type: schema.TypeString, Optional: true, Computed: true,
				Description: "Role that owns the database. By default the one that makes it.",
			},
			"connection_limit": {
				Type: schema.TypeInt, Optional: true, Computed: true,
				Description: "How many connections there may be at once; -1 is any number of them, and the default.",
			},
			"comment": {Type: schema.TypeString, Optional: true, Description: "What the database is for."},
			"encoding": {
				Type: schema.TypeString, Optional: true, Computed: true, ForceNew: true,
				Description: "Character set encoding, that of the template by default. It cannot be changed.",
			},
			"template": {
				Type: schema.TypeString, Optional: true, ForceNew: true,
				Description: "Database that this one is made a copy of. It cannot be changed.",
			},
		},
	}
}

func createDatabase(ctx context.Context, s *Server, d *schema.ResourceData) error {
	statement := strings.Builder{}
	statement.WriteString("CREATE DATABASE " + name(d))

	if owner := text(d, "owner"); owner != "" {
		statement.WriteString(" OWNER " + pq.QuoteIdentifier(owner))
	}

	if template := text(d, "template"); template != "" {
		statement.WriteString(" TEMPLATE " + pq.QuoteIdentifier(template))
	}

	if encoding := text(d, "encoding"); encoding != "" {
		statement.WriteString(" ENCODING " + pq.QuoteLiteral(encoding))
	}

	if limit, ok := d.GetOk("connection_limit"); ok {
		fmt.Fprintf(&statement, " CONNECTION LIMIT %v", limit)
	}

	if err := s.exec(ctx, "", statement.String()); err != nil {
		return err
	}

	d.SetId(text(d, "name"))

	if text(d, "comment") == "" {
		return nil
	}

	return s.exec(ctx, "", commentOnDatabase(d))
}

func databaseAlterations() []alteration {
	return []alteration{
		{"owner", func(d *schema.ResourceData) string {
			return "ALTER DATABASE " + name(d) + " OWNER TO " + pq.QuoteIdentifier(text(d, "owner"))
		}},
		{"connection_limit", func(d *schema.ResourceData) string {
			return fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %v", name(d), d.Get("connection_limit"))
		}},
		{"comment", commentOnDatabase},
	}
}

func commentOnDatabase(d *schema.ResourceData) string {
	return "COMMENT ON DATABASE " + name(d) + " IS " + pq.QuoteLiteral(text(d, "comment"))
}

func readDatabase(ctx context.Context, s *Server, d *schema.ResourceData) error {
	var (
		owner, encoding, comment string
		limit                    int
	)

	err := s.row(ctx, "", `SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datconnlimit,
		coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = $1`,
		[]any{d.Id()}, &owner, &encoding, &limit, &comment)
	if errors.Is(err, sql.ErrNoRows) {
		d.SetId("")

		return nil
	}

	if err != nil {
		return fmt.Errorf("cannot read database %q: %w", d.Id(), err)
	}

	return set(d, map[string]any{
		"name": d.Id(), "owner": owner, "encoding": encoding, "connection_limit": limit, "comment": comment,
	})
}
