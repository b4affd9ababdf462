// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stale is how old the heartbeat may be: three beats and more.
const stale = 40 * time.Second

// manager checks that somebody renews the leases.
func manager(s *State) []Finding {
	m := s.Manager
	f := Finding{
		Severity: Error, Object: "Lease " + m.Namespace + "/" + m.Heartbeat,
		Why:    "gates stay as they are, and the kinds that fail closed cannot be changed",
		Remedy: "kubectl get pods, logs -n " + m.Namespace + "; where it runs elsewhere, say so with --kausality-namespace",
	}

	lease := s.Lists[Leases].find(m.Heartbeat)
	if lease == nil {
		f.What = "no manager has ever renewed it"

		return []Finding{f}
	}

	if at, ok := renewed(lease); !ok || s.Now.Sub(at) > stale {
		f.What = "no manager is at work: it was renewed at " + at.UTC().Format(time.RFC3339) + " last"

		return []Finding{f}
	}

	if what := leaderless(s); what != "" {
		f.Object, f.What = "Lease "+m.Namespace+"/"+m.Leader, what
		f.Why = "gates stay as they are, and configurations are not kept"

		return []Finding{f}
	}

	what := "The manager is at work in namespace " + m.Namespace + "."
	if m.Version != "" {
		what = "The manager " + m.Version + " is at work in namespace " + m.Namespace + ", as " + m.By + " says."
	}

	return []Finding{{Severity: OK, What: what}}
}

// leaderless says why nobody leads, where somebody has to; empty otherwise.
func leaderless(s *State) string {
	m := s.Manager

	lease := s.Lists[Leases].find(m.Leader)
	if lease == nil {
		if m.Elected {
			return "no manager has ever led"
		}

		return ""
	}

	at, ok := renewed(lease)
	since := " since " + at.UTC().Format(time.RFC3339)

	switch {
	case resource.String(lease.Object, "spec", "holderIdentity") == "":
		// Who ends releases it, and without --leader-elect nobody takes it.
		if m.Elected && (!ok || s.Now.Sub(at) > stale) {
			return "nobody holds it" + since
		}
	case !ok || s.Now.Sub(at) > patience(lease):
		return "no leader renews it" + since
	}

	return ""
}

// patience is how long a leader may not have renewed its lease: any other takes
// it over when it has ended.
func patience(lease *unstructured.Unstructured) time.Duration {
	return 2 * time.Duration(resource.Int(lease.Object, "spec", "leaseDurationSeconds")) * time.Second
}

func renewed(lease *unstructured.Unstructured) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, resource.String(lease.Object, "spec", "renewTime"))

	return at, err == nil
}
