// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terraform is a Terraform provider for a PostgreSQL server: databases,
// roles, grants and materialized views. Each attribute that changes is one
// statement.
package terraform

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/lib/pq"
)

// Names of the resources.
const (
	Database = "postgresql_database"
	Role     = "postgresql_role"
	Grant    = "postgresql_grant"
	View     = "postgresql_view"
)

// Provider returns the provider. The meta value of its resources is a *Server.
func Provider() *schema.Provider {
	return &schema.Provider{ResourcesMap: map[string]*schema.Resource{
		Database: database(),
		Role:     role(),
		Grant:    grant(),
		View:     view(),
	}}
}

// Codes of errors, see the appendix "PostgreSQL Error Codes" of its manual.
const (
	undefinedDatabase pq.ErrorCode = "3D000"
	undefinedObject   pq.ErrorCode = "42704"
)

// isUndefined says whether PostgreSQL does not know a database or a role that a
// statement names.
func isUndefined(err error) bool {
	e := &pq.Error{}

	return errors.As(err, &e) && (e.Code == undefinedDatabase || e.Code == undefinedObject)
}

// An operation does something with a resource on a server.
type operation func(ctx context.Context, s *Server, d *schema.ResourceData) error

// on makes of an operation what the SDK calls.
func on(do operation) func(context.Context, *schema.ResourceData, any) diag.Diagnostics {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		s, ok := meta.(*Server)
		if !ok {
			return diag.Errorf("cannot connect: the provider is configured with a %T", meta)
		}

		return diag.FromErr(do(ctx, s, d))
	}
}

// then does one thing after another, until one fails.
func then(all ...operation) operation {
	return func(ctx context.Context, s *Server, d *schema.ResourceData) error {
		for _, do := range all {
			if err := do(ctx, s, d); err != nil {
				return err
			}
		}

		return nil
	}
}

// set sets attributes as they were read.
func set(d *schema.ResourceData, values map[string]any) error {
	for key, value := range values {
		if err := d.Set(key, value); err != nil {
			return fmt.Errorf("cannot set attribute %q: %w", key, err)
		}
	}

	return nil
}

// text returns the value of an attribute that is a string, or "".
func text(d *schema.ResourceData, key string) string {
	s, _ := d.Get(key).(string)

	return s
}

// name returns the name of a resource, quoted for a statement.
func name(d *schema.ResourceData) string { return pq.QuoteIdentifier(text(d, "name")) }

// An alteration is how a change of an attribute is written as a statement.
type alteration struct {
	attribute string
	statement func(d *schema.ResourceData) string
}

// alter makes one statement of each attribute that changes.
func alter(all []alteration) operation {
	return func(ctx context.Context, s *Server, d *schema.ResourceData) error {
		for _, a := range all {
			if !d.HasChange(a.attribute) {
				continue
			}

			if err := s.exec(ctx, "", a.statement(d)); err != nil {
				return err
			}
		}

		return nil
	}
}
