// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/kausality-io/kausality-crossplane/internal/doctor"
)

// locate finds the manager.
func (c *cluster) locate(ctx context.Context) doctor.Manager {
	lists := map[doctor.Source]doctor.List{}
	for _, src := range []doctor.Source{doctor.Mutating, doctor.Validating} {
		lists[src] = c.list(ctx, src, "")
	}

	m := doctor.FindManager(lists)
	if m.By == "" {
		lists[doctor.Deployments] = c.list(ctx, doctor.Deployments, "")
		m = doctor.FindManager(lists)
	}

	return m
}

// recorded adds what the manager says of itself, where nothing else in the
// cluster shows it: it may run anywhere.
func (c *cluster) recorded(ctx context.Context, doc *versionDocument) {
	const manager = "kausality-manager"

	if slices.ContainsFunc(doc.Installed, func(i installed) bool { return i.Program == manager }) {
		return
	}

	m := c.locate(ctx)
	if m.Version == "" {
		return
	}

	doc.Installed = append(doc.Installed, installed{Program: manager, Object: m.By, Version: m.Version})
	doc.Problems = slices.DeleteFunc(doc.Problems, func(p string) bool { return strings.HasPrefix(p, manager+": ") })
}
