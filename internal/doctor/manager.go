// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Names of the manager's things where nothing says others.
const (
	// Namespace the manager runs in.
	Namespace = "kausality-system"

	heartbeat   = "kausality-webhook"
	leader      = "kausality-manager"
	certificate = "kausality-webhook-cert"
	account     = "kausality-manager"
)

// Manager is where the manager is, and what its things are called.
type Manager struct {
	// By is the object that shows it, as KIND NAME; empty where nothing does, and
	// all below is as it is by default.
	By string
	// Version of it; empty where nothing says.
	Version string
	// Namespace that it runs in, and that its leases, secrets and records of what
	// was left behind are in.
	Namespace string
	// ServiceAccount that it runs as.
	ServiceAccount string
	// Heartbeat is the lease that managers with a webhook renew every ten seconds,
	// Leader the one that a leader renews.
	Heartbeat, Leader string
	// Elected is true if it is known that one of them has to lead.
	Elected bool
	// Secret holds the webhook's certificate; empty where nothing says.
	Secret string
	// Mounted is true if somebody else than the manager maintains that.
	Mounted bool
	// MaxOpen is how long a gate may be open where no policy says; 0 where nothing
	// shows it.
	MaxOpen time.Duration
	// WithoutDrift are kinds of which it looks for no drift.
	WithoutDrift management.Kinds
}

// FindManager finds the manager however it was installed: by what it writes on
// the webhook configurations; or else by the Service these name, and by the
// Deployment that runs it, be it of a chart, of manifests, or made by Crossplane
// for a Provider. It reads [Mutating], [Validating] and [Deployments].
func FindManager(lists map[Source]List) Manager {
	m := Manager{Namespace: Namespace, ServiceAccount: account, Heartbeat: heartbeat, Leader: leader, Secret: certificate}

	// From what says least to what says most.
	for _, d := range lists[Deployments].Items {
		m.deployed(d)
	}

	for _, src := range []Source{Mutating, Validating} {
		if u := lists[src].find(v1alpha1.NameWebhooks); u != nil {
			m.served(u)
		}
	}

	for _, src := range []Source{Mutating, Validating} {
		if u := lists[src].find(v1alpha1.NameWebhooks); u != nil {
			m.recorded(u)
		}
	}

	return m
}

// recorded takes what the manager wrote of itself.
func (m *Manager) recorded(u *unstructured.Unstructured) {
	rec := v1alpha1.ManagerRecord{}

	text, ok := u.GetAnnotations()[v1alpha1.AnnotationManager]
	if !ok || yaml.Unmarshal([]byte(text), &rec) != nil || rec.Namespace == "" {
		return
	}

	m.By, m.Version, m.Namespace = name(u), rec.Version, rec.Namespace
	m.ServiceAccount = cmp.Or(rec.ServiceAccount, m.ServiceAccount)
	m.Heartbeat = cmp.Or(rec.Heartbeat, m.Heartbeat)
	m.Leader, m.Elected = cmp.Or(rec.Leader, m.Leader), rec.Leader != ""
	m.MaxOpen = rec.MaxOpen.Duration

	if len(rec.WithoutDrift) > 0 {
		m.WithoutDrift, _ = management.ParseKinds(rec.WithoutDrift) // The manager has read them.
	}

	switch {
	case rec.Secret != "":
		m.Secret, m.Mounted = rec.Secret, false
	case !m.Mounted:
		m.Secret, m.Mounted = "", true
	}
}

// served takes the namespace of the Service that a webhook configuration names.
func (m *Manager) served(u *unstructured.Unstructured) {
	for _, h := range maps(u.Object, fieldWebhooks) {
		service := resource.Map(h, fieldClient, "service")
		if ns := resource.String(service, "namespace"); ns != "" {
			m.By, m.Namespace = cmp.Or(m.By, name(u)), ns
		}
	}
}
