// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

const (
	// homeName is the flag that says where Kausality runs.
	homeName = "kausality-namespace"
	// defaultHome is where it runs when nobody says.
	defaultHome = "kausality-system"
	// patienceHome is how long finding out may take.
	patienceHome = 10 * time.Second
)

// findHome finds out where Kausality runs, before a command runs to which it was not
// given. Crossplane runs a Provider in its own namespace, Helm wherever somebody
// wants it.
func (o *clusterOptions) findHome(cmd *cobra.Command, _ []string) {
	client := cmd.Flags().Lookup("client") // Asks no cluster.
	if cmd.Flags().Changed(homeName) || client != nil && client.Value.String() == "true" {
		return
	}

	c, err := newCluster(*o)
	if err != nil {
		return // The command says so.
	}

	ctx, cancel := context.WithTimeout(cmd.Context(), patienceHome)
	defer cancel()

	if m := c.locate(ctx); m.Namespace != "" {
		o.home = m.Namespace
	}
}
