// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// stays is how long a managed resource may be waiting for its gate before it is
// reported.
const stays = 5 * time.Minute

// gates checks those that are open for long, or whose record cannot be read.
func gates(s *State) []Finding {
	var out []Finding

	for _, kind := range s.Unread {
		out = append(out, Finding{
			Severity: Warning, What: "cannot look at " + kind, Why: "whether its gates are overdue is not known",
			Remedy: "run it as somebody who may list it",
		})
	}

	opts := gate.Options{MaxOpen: s.MaxOpen, PolicyGate: policyGates(s.Lists[AllowancePolicies])}

	for _, u := range s.Managed {
		rec, err := allowance.ParseGate(u)

		switch {
		case err != nil:
			out = append(out, Finding{
				Severity: Error, Object: name(u), What: err.Error(), Why: "its gate does not move",
				Remedy: "see the manager's log and events; the manager writes the record anew where it can",
			})
		case rec != nil && rec.State == v1alpha1.GateOpen && overdue(s.Now, rec, opts):
			c, _ := resource.ConditionOf(u, resource.ConditionSynced)
			out = append(out, Finding{
				Severity: Error, Object: name(u),
				What: fmt.Sprintf("its gate is open since %s: Synced=%s %s", rec.Since.UTC().Format(time.RFC3339), c.Status, c.Message),
				Why:  "whatever its spec says is applied meanwhile", Remedy: "see why its provider does not apply the change: kubectl describe it",
			})
		}
	}

	return out
}

// overdue reports whether a gate is open for longer than what opened it allows.
func overdue(now time.Time, rec *v1alpha1.GateRecord, opts gate.Options) bool {
	most := gate.MaxOpen(rec, opts)

	return most > 0 && now.Sub(rec.Since.Time) > most
}

// policyGates are what policies say of gates, by name.
func policyGates(list List) func(string) *policy.Gate {
	return func(name string) *policy.Gate {
		u := list.find(name)
		if u == nil {
			return nil
		}

		settings := struct {
			Spec struct {
				Gate *v1alpha1.GateSettings `json:"gate"`
			} `json:"spec"`
		}{}

		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &settings); err != nil {
			return nil // The API server would not have stored it.
		}

		out, _ := policy.CompileGate(settings.Spec.Gate) // What is wrong is in the policy's status.

		return out
	}
}

// left checks for managed resources that nobody owns any more.
func left(s *State) []Finding {
	out := make([]Finding, 0, len(s.Managed))

	for _, u := range s.Managed {
		f := Finding{
			Severity: Warning, Object: name(u), Why: "its external object is there, and nobody asks anything of it",
			Remedy: "kubectl kausality adopt " + resource.Argument(u) + ", or kubectl kausality release " + resource.Argument(u),
		}

		ref, owned := resource.ParentOf(u)

		switch {
		case owned && s.Gone[ref.UID]:
			f.What = fmt.Sprintf("its owner %s %s is gone", ref.Kind, ref.Name)
		case resource.Deleting(u) && !gate.MayDelete(u) && s.Now.Sub(u.GetDeletionTimestamp().Time) > stays:
			f.What = "it is being deleted, and its gate is not open for Delete"
		default:
			continue
		}

		out = append(out, f)
	}

	return out
}

// recorded checks for records of external objects whose managed resource is gone.
func recorded(s *State) []Finding {
	var out []Finding

	for _, u := range s.Lists[Secrets].Items {
		if _, ok := u.GetLabels()[orphan.Label]; !ok {
			continue
		}

		out = append(out, Finding{
			Severity: Warning, Object: name(u),
			What:   "it is the record of an external object whose managed resource is gone: " + recordedName(u),
			Why:    "the external object is there, and nobody asks anything of it",
			Remedy: "take it back with kubectl kausality adopt, or throw the record away with kubectl kausality release --orphan",
		})
	}

	return out
}

// recordedName names what a record is about.
func recordedName(secret *unstructured.Unstructured) string {
	data := map[string][]byte{}

	for key := range resource.Map(secret.Object, "data") {
		data[key], _ = base64.StdEncoding.DecodeString(resource.String(secret.Object, "data", key))
	}

	r, err := orphan.ReadRecord(data)
	if err != nil {
		return err.Error()
	}

	return fmt.Sprintf("%s, external name %s", name(r.Object), orphan.ExternalName(r.Object))
}
