// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/orphan"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// gates checks those that are open for long, or whose record cannot be read.
func gates(s *State) []Finding {
	var out []Finding

	for _, kind := range s.Unread {
		out = append(out, Finding{
			Severity: Warning, What: "cannot look at " + kind, Why: "whether its gates are overdue is not known",
			Remedy: "run it as somebody who may list it",
		})
	}

	opts := gate.Options{MaxOpen: s.MaxOpen, PolicyGate: PolicyGates(s.Lists[AllowancePolicies])}

	for _, u := range s.Managed {
		for _, f := range audit.Misread(u) {
			out = append(out, audited(Error, u, f))
		}

		for _, f := range audit.Gate(u, s.Now, opts) {
			if f.Rule == audit.GateOverdue {
				out = append(out, audited(Error, u, f))
			}
		}
	}

	return out
}

// audited is what an audit finds as what the doctor finds.
func audited(severity Severity, u *unstructured.Unstructured, f audit.Finding) Finding {
	return Finding{Severity: severity, Object: name(u), What: f.Message, Why: f.Why, Remedy: f.Remedy}
}

// PolicyGates are what policies say of gates, by name.
func PolicyGates(list List) func(string) *policy.Gate {
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
	var out []Finding

	for _, u := range s.Managed {
		ref, owned := resource.ParentOf(u)

		for _, f := range audit.Left(u, ref, owned && s.Gone[ref.UID], s.Now) {
			out = append(out, audited(Warning, u, f))
		}
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

		out = append(out, audited(Warning, u, audit.Recorded(audit.RefOf(u), SecretData(u))))
	}

	return out
}

// SecretData is what a Secret holds.
func SecretData(secret *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}

	for key := range resource.Map(secret.Object, "data") {
		data[key], _ = base64.StdEncoding.DecodeString(resource.String(secret.Object, "data", key))
	}

	return data
}
