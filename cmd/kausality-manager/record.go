// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// record is what the manager says of itself on the webhook configurations.
func (c *cli) record() v1alpha1.ManagerRecord {
	out := v1alpha1.ManagerRecord{
		Version: version, Namespace: c.Namespace, ServiceAccount: c.ServiceAccount, Heartbeat: heartbeat, Secret: c.WebhookSecret,
		MaxOpen: metav1.Duration{Duration: c.MaxOpen}, WithoutDrift: c.GateWithoutDrift,
	}

	if c.WebhookCertDir != "" {
		out.Secret = ""
	}

	if c.LeaderElect {
		out.Leader = leaderLease
	}

	return out
}
