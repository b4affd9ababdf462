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
)

// view is a materialized view. To make or change it takes as long as its query
// does, and fails where that fails.
func view() *schema.Resource {
	return &schema.Resource{
		Description: "A materialized view.",
		CreateContext: on(func(ctx context.Context, s *Server, d *schema.ResourceData) error {
			if err := s.exec(ctx, text(d, "database"), createView(d)); err != nil {
				return err
			}

			d.SetId(text(d, "database") + "/" + text(d, "name"))

			return nil
		}),
		ReadContext: on(readView),
		UpdateContext: on(func(ctx context.Context, s *Server, d *schema.ResourceData) error {
			return s.exec(ctx, text(d, "database"), "BEGIN; "+dropView(d)+"; "+createView(d)+"; COMMIT")
		}),
		DeleteContext: on(func(ctx context.Context, s *Server, d *schema.ResourceData) error {
			err := s.exec(ctx, text(d, "database"), dropView(d))
			if isUndefined(err) {
				return nil // It went with the database.
			}

			return err
		}),
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		Schema: map[string]*schema.Schema{
			"name":     {Type: schema.TypeString, Required: true, ForceNew: true, Description: "Name of the view."},
			"database": {Type: schema.TypeString, Required: true, ForceNew: true, Description: "Name of its database."},
			"query": {
				Type: schema.TypeString, Required: true,
				Description: "What it holds the result of. PostgreSQL rewrites it, so it is not read back.",
			},
		},
	}
}

func createView(d *schema.ResourceData) string {
	return "CREATE MATERIALIZED VIEW " + name(d) + " AS " + text(d, "query")
}

func dropView(d *schema.ResourceData) string { return "DROP MATERIALIZED VIEW " + name(d) }

func readView(ctx context.Context, s *Server, d *schema.ResourceData) error {
	database, view, ok := strings.Cut(d.Id(), "/")
	if !ok {
		return fmt.Errorf("cannot read view %q: it is not named DATABASE/VIEW", d.Id())
	}

	var found string

	err := s.row(ctx, database, "SELECT matviewname FROM pg_matviews WHERE matviewname = $1", []any{view}, &found)
	if errors.Is(err, sql.ErrNoRows) || isUndefined(err) {
		d.SetId("")

		return nil
	}

	if err != nil {
		return fmt.Errorf("cannot read view %q: %w", d.Id(), err)
	}

	return set(d, map[string]any{"name": view, "database": database})
}
