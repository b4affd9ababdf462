// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/lib/pq"
)

// grant is what a role may do with a database.
func grant() *schema.Resource {
	return &schema.Resource{
		Description:   "What a role may do with a database.",
		CreateContext: on(then(createGrant, readGrant)),
		ReadContext:   on(readGrant),
		UpdateContext: on(then(updateGrant, readGrant)),
		DeleteContext: on(func(ctx context.Context, s *Server, d *schema.ResourceData) error {
			err := s.exec(ctx, "", "REVOKE ALL PRIVILEGES"+between(d, "FROM"))
			if isUndefined(err) {
				return nil // It went with the database or the role.
			}

			return err
		}),
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		Schema: map[string]*schema.Schema{
			"role":     {Type: schema.TypeString, Required: true, ForceNew: true, Description: "Name of the role."},
			"database": {Type: schema.TypeString, Required: true, ForceNew: true, Description: "Name of the database."},
			"privileges": {
				Type: schema.TypeSet, Required: true, Elem: &schema.Schema{Type: schema.TypeString},
				Description: "What the role may do: CONNECT, CREATE, TEMPORARY.",
			},
		},
	}
}

// between names the database and the role of a grant, for a statement.
func between(d *schema.ResourceData, preposition string) string {
	return fmt.Sprintf(" ON DATABASE %s %s %s",
		pq.QuoteIdentifier(text(d, "database")), preposition, pq.QuoteIdentifier(text(d, "role")))
}

// privileges writes a set of them for a statement, in order. Those that the
// manual does not know of are left to PostgreSQL to refuse.
func privileges(of any) string {
	set, ok := of.(*schema.Set)
	if !ok {
		return ""
	}

	all := make([]string, 0, set.Len())

	for _, one := range set.List() {
		all = append(all, fmt.Sprint(one))
	}

	slices.Sort(all)

	return strings.Join(all, ", ")
}

func createGrant(ctx context.Context, s *Server, d *schema.ResourceData) error {
	if err := s.exec(ctx, "", "GRANT "+privileges(d.Get("privileges"))+between(d, "TO")); err != nil {
		return err
	}

	d.SetId(text(d, "role") + "/" + text(d, "database"))

	return nil
}

func updateGrant(ctx context.Context, s *Server, d *schema.ResourceData) error {
	was, is := d.GetChange("privileges")

	before, ok := was.(*schema.Set)
	if !ok {
		return nil
	}

	after, ok := is.(*schema.Set)
	if !ok {
		return nil
	}

	if gone := privileges(before.Difference(after)); gone != "" {
		if err := s.exec(ctx, "", "REVOKE "+gone+between(d, "FROM")); err != nil {
			return err
		}
	}

	if added := privileges(after.Difference(before)); added != "" {
		return s.exec(ctx, "", "GRANT "+added+between(d, "TO"))
	}

	return nil
}

func readGrant(ctx context.Context, s *Server, d *schema.ResourceData) error {
	role, database, ok := strings.Cut(d.Id(), "/")
	if !ok {
		return fmt.Errorf("cannot read grant %q: it is not named ROLE/DATABASE", d.Id())
	}

	var granted []string

	err := s.row(ctx, "", `SELECT array_agg(acl.privilege_type::text ORDER BY 1)
		FROM pg_database, aclexplode(datacl) AS acl JOIN pg_roles ON pg_roles.oid = acl.grantee
		WHERE datname = $1 AND rolname = $2 HAVING count(*) > 0`,
		[]any{database, role}, pq.Array(&granted))
	if errors.Is(err, sql.ErrNoRows) {
		d.SetId("")

		return nil
	}

	if err != nil {
		return fmt.Errorf("cannot read grant %q: %w", d.Id(), err)
	}

	return set(d, map[string]any{"role": role, "database": database, "privileges": granted})
}
