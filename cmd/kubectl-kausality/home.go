// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const (
	// homeName is the flag that says where Kausality runs.
	homeName = "kausality-namespace"
	// defaultHome is where it runs when nobody tells.
	defaultHome = "kausality-system"
	// patienceHome is how long finding out may take.
	patienceHome = 10 * time.Second
)

// findHome finds out where Kausality runs, before a command runs that was not
// told: where the Service of its webhook is. Crossplane runs a Provider in its own
// namespace, Helm wherever somebody wants it.
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

	gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

	configuration, err := c.client.Resource(gvr).Get(ctx, "kausality", metav1.GetOptions{})
	if err != nil {
		return // Not installed, or not for us to read.
	}

	for _, v := range resource.List(configuration.Object, "webhooks") {
		webhook, _ := v.(map[string]any)
		if at := resource.String(webhook, "clientConfig", "service", "namespace"); at != "" {
			o.home = at

			return
		}
	}
}
