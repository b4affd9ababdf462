// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// Severity says how bad a finding is.
type Severity string

// Severities.
const (
	// OK means that nothing is wrong.
	OK Severity = "ok"
	// Warning means that something could not be checked, or may become wrong.
	Warning Severity = "warning"
	// Error means that something does not work, or is not gated that should be.
	Error Severity = "error"
)

// Finding is one thing that was found out.
type Finding struct {
	// Check that found it: crds, webhooks, guards, manager, rights, webhook-reach,
	// certificates, function, compositions, crossplane, providers, kinds, policies,
	// enforcements, windows, waiting, gates or left-behind.
	Check string `json:"check"`
	// Severity of it.
	Severity Severity `json:"severity"`
	// Object it is about, as KIND NAME; empty for none.
	Object string `json:"object,omitempty"`
	// What was found.
	What string `json:"what"`
	// Why it matters; empty where nothing is wrong.
	Why string `json:"why,omitempty"`
	// Remedy says what helps; empty where nothing is wrong.
	Remedy string `json:"remedy,omitempty"`
}

// List is what was read of one kind.
type List struct {
	// Items are all there are.
	Items []*unstructured.Unstructured
	// Problem says why they could not be read, in words; empty if they were.
	Problem string
	// Absent is true where nothing serves the kind.
	Absent bool
}

// State is what is read of a cluster.
type State struct {
	// Now is the time.
	Now time.Time
	// Manager is where the manager is.
	Manager Manager
	// Functions are the names that the composition function is installed under.
	Functions []string
	// MaxOpen is how long a gate may be open where no policy says.
	MaxOpen time.Duration

	// Lists has what was read, by source.
	Lists map[Source]List
	// Managed are the managed resources of gated kinds. What could not be read of
	// them is in Unread.
	Managed []*unstructured.Unstructured
	// Unread are the kinds of managed resources that could not be read.
	Unread []string
	// Gone are the UIDs of owners of managed resources that are not there any more.
	Gone map[string]bool
	// Served are the kinds that the API server serves and that can be changed, and Readable
	// those whose objects can be got, listed and watched.
	Served, Readable []right.Kind
	// Composites are the XRs whose Compositions run the function, as far as they could
	// be read.
	Composites []*unstructured.Unstructured
	// Former are the XRs of which the manager says that their Compositions do not run the function any more.
	Former []*unstructured.Unstructured
	// MissingRights are the rights of [Needs] that the manager has not. RightsProblem says why
	// nobody could know; empty if somebody did.
	MissingRights []right.MissingRights
	RightsProblem error
	// Probes are how the webhooks of [Asks] were reached.
	Probes []Probe
}

// check is one thing to check.
type check struct {
	name string
	// well is what there is to say when nothing is wrong.
	well string
	// needs are what must have been read.
	needs []Source
	run   func(*State) []Finding
}

// checks are made in this order.
func checks() []check {
	return []check{
		{"crds", "Kausality's kinds are installed and served.", []Source{CRDs}, definitions},
		{"webhooks", "The webhook configurations are there and have a CA.", []Source{Mutating, Validating}, webhooks},
		{"guards", "Every gated kind has its guards.", []Source{CRDs, AllowancePolicies, Guards, GuardBindings, Mutating}, guards},
		{"manager", "The manager is at work.", []Source{Leases}, manager},
		{"rights", "The manager may do all that what is governed takes.", nil, rights},
		{"webhook-reach", "The webhook answered a dry-run request.", nil, reach},
		{"certificates", "The CA lasts.", []Source{Mutating, Validating}, authorities},
		{"certificates", "The webhook's certificate is signed by what the API server trusts.", []Source{Mutating, Validating, Secrets}, serving},
		{"function", "The composition function is installed and healthy.", []Source{Functions}, function},
		{"compositions", "The function runs last wherever it is needed.", []Source{Compositions, AllowancePolicies}, compositions},
		{"compositions", "Nothing is held that no function reports any more.", nil, released},
		{"crossplane", "The version of Crossplane is supported.", []Source{CRDs, Deployments}, crossplane},
		{"providers", "Providers are healthy, and say which generation they observed.", []Source{Providers}, providers},
		{"kinds", "Every kind of managed resource can be gated.", []Source{CRDs}, kinds},
		{"policies", "All AllowancePolicies are in force.", []Source{AllowancePolicies}, policies},
		{"bindings", "All AllowanceBindings are in force.", []Source{AllowanceBindings, GuardBindings}, bindings},
		{"enforcements", "All Enforcements are in force.", []Source{Enforcements}, enforcements},
		{"windows", "All UpgradeAllowances are in order.", []Source{UpgradeAllowances}, windows},
		{"waiting", "Nothing is held for longer than a day.", []Source{PendingChanges}, waiting},
		{"gates", "No gate is overdue.", []Source{CRDs, AllowancePolicies}, gates},
		{"left-behind", "No managed resource is orphaned.", []Source{CRDs, AllowancePolicies}, left},
		{"left-behind", "No external object is recorded as orphaned.", []Source{Secrets}, recorded},
	}
}

// Diagnose makes all checks. What it returns is in their order; each says at
// least one thing.
func Diagnose(s *State) []Finding {
	var out []Finding

	for _, c := range checks() {
		found := c.unread(s)
		if len(found) == 0 {
			found = c.run(s)
		}

		if len(found) == 0 {
			found = []Finding{{Severity: OK, What: c.well}}
		}

		for i := range found {
			found[i].Check = c.name
		}

		out = append(out, found...)
	}

	return out
}

// unread says what a check needs and could not be read: nothing is better than
// half.
func (c check) unread(s *State) []Finding {
	var out []Finding

	for _, n := range c.needs {
		if p := s.Lists[n].Problem; p != "" {
			out = append(out, Finding{
				Severity: Warning,
				What:     "cannot look: " + p,
				Why:      "whether " + lower(c.well) + " is not known",
				Remedy:   "run it as somebody who may list " + n.Resource + "." + n.Group,
			})
		}
	}

	return out
}

// Worst is the worst severity of some findings.
func Worst(list []Finding) Severity {
	out := OK

	for _, f := range list {
		if f.Severity == Error || f.Severity == Warning && out == OK {
			out = f.Severity
		}
	}

	return out
}
