// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Fields of webhook configurations.
const (
	fieldWebhooks = "webhooks"
	fieldClient   = "clientConfig"
	fieldCA       = "caBundle"
)

// policiesHook is the webhook about our own kinds.
const policiesHook = "policies.kausality.io"

// approvalsHook is the webhook that ChangeApprovals are put to when they are made. It is on the
// same server, and there is nothing to ask it about that would leave no trace.
const approvalsHook = "approvals.kausality.io"

// hook is one webhook of a configuration of ours.
type hook struct {
	source        Source
	configuration string
	object        map[string]any
}

// hooks are all there are, those that change things first.
func hooks(s *State) []hook {
	var out []hook

	for _, src := range []Source{Mutating, Validating} {
		if u := s.Lists[src].find(v1alpha1.NameWebhooks); u != nil {
			for _, h := range maps(u.Object, fieldWebhooks) {
				out = append(out, hook{source: src, configuration: name(u), object: h})
			}
		}
	}

	return out
}

func (h hook) name() string { return resource.String(h.object, "name") }

func (h hook) bundle() string { return resource.String(h.object, fieldClient, fieldCA) }

// server is the name that the certificate of the webhook's server has to be for;
// empty where nothing says.
func (h hook) server() string {
	service := resource.Map(h.object, fieldClient, "service")
	if service == nil {
		return hostOf(resource.String(h.object, fieldClient, "url"))
	}

	return fmt.Sprintf("%s.%s.svc", resource.String(service, "name"), resource.String(service, "namespace"))
}

// failsClosed reports whether requests fail while it does not answer.
func (h hook) failsClosed() bool { return resource.String(h.object, "failurePolicy") != "Ignore" }

// An Ask is a webhook that is to be asked whether it answers.
type Ask struct {
	// Webhook is its name, and Configuration what it is in, as KIND NAME; empty
	// where that is missing.
	Webhook, Configuration string
	// Own is true of the webhook that is about our own kinds.
	Own bool
	// Open is true of one that fails open: it is seen only by what it changes.
	// Where others are not reached the request fails.
	Open bool
	// Sources are what it is asked about.
	Sources []Source
	// Except are namespaces in which it is not, and Labels are what objects must have.
	Except []string
	Labels map[string]string
}

// Asks are the webhooks to be asked, one for each different way to one: that
// about our own kinds in any case. One that fails open, and changes nothing, does
// not know whether it was reached.
func Asks(s *State) []Ask {
	out := []Ask{{Webhook: policiesHook, Own: true, Configuration: "ValidatingWebhookConfiguration " + v1alpha1.NameWebhooks}}
	list := hooks(s)
	seen := map[string]bool{}

	for _, h := range list {
		if h.name() == policiesHook {
			seen[h.way()] = true
		}
	}

	// Those that say most first.
	slices.SortStableFunc(list, func(a, b hook) int { return b.weight() - a.weight() })

	for _, h := range list {
		if h.weight() == 0 || seen[h.way()] || h.name() == approvalsHook {
			continue
		}

		seen[h.way()] = true
		out = append(out, h.ask())
	}

	return out
}

// weight is the greater the more an answer to a request says.
func (h hook) weight() int {
	switch {
	case h.failsClosed():
		return 2
	case h.source == Mutating:
		return 1
	default:
		return 0
	}
}

// way is how the API server gets to the webhook.
func (h hook) way() string { return fmt.Sprint(resource.Map(h.object, fieldClient)) }

func (h hook) ask() Ask {
	out := Ask{Webhook: h.name(), Configuration: h.configuration, Open: !h.failsClosed(), Labels: map[string]string{}}

	for _, rule := range maps(h.object, "rules") {
		if !slices.Contains(resource.Strings(rule, "operations"), "UPDATE") {
			continue
		}

		for _, group := range resource.Strings(rule, "apiGroups") {
			for _, r := range resource.Strings(rule, "resources") {
				out.Sources = append(out.Sources, Source{Group: group, Resource: r})
			}
		}
	}

	for _, e := range maps(h.object, "namespaceSelector", "matchExpressions") {
		if resource.String(e, "operator") == "NotIn" {
			out.Except = append(out.Except, resource.Strings(e, "values")...)
		}
	}

	for key, value := range resource.Map(h.object, "objectSelector", "matchLabels") {
		out.Labels[key], _ = value.(string)
	}

	return out
}

// Suits reports whether a webhook that is asked is asked about an object.
func (a Ask) Suits(u *unstructured.Unstructured) bool {
	if slices.Contains(a.Except, u.GetNamespace()) || resource.Deleting(u) {
		return false
	}

	for key, value := range a.Labels {
		if u.GetLabels()[key] != value {
			return false
		}
	}

	return true
}

// approvalGuards checks that what approvers are shown, and who they are, is guarded.
func approvalGuards(s *State) []Finding {
	if !slices.ContainsFunc(hooks(s), func(h hook) bool { return h.name() == approvalsHook }) {
		return nil
	}

	var out []Finding

	for _, g := range []struct{ name, why string }{
		{v1alpha1.NameApprovalGuard, "whoever may make a ChangeApproval could write that somebody else did"},
		{v1alpha1.NamePendingGuard, "whoever may write PendingChanges could show others something else than what is held"},
	} {
		for kind, list := range map[string]List{
			"ValidatingAdmissionPolicy": s.Lists[Guards], "ValidatingAdmissionPolicyBinding": s.Lists[GuardBindings],
		} {
			if list.find(g.name) == nil {
				out = append(out, Finding{Severity: Error, Object: kind + " " + g.name, What: missing, Why: g.why, Remedy: restart})
			}
		}
	}

	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Object, b.Object) })

	return out
}

// A Probe is what became of a dry-run request that a webhook has to answer.
type Probe struct {
	Ask

	// Object that it was asked about, as KIND NAME; empty for none of those there are.
	Object string
	// Answered is true if the webhook did.
	Answered bool
	// Problem says why the request could not be made, in words; empty if it was.
	Problem string
}

// reach checks that the API server asks the webhooks.
func reach(s *State) []Finding {
	out := make([]Finding, 0, len(s.Probes))

	for _, p := range s.Probes {
		f := Finding{Object: p.Configuration}

		switch {
		case p.Problem != "":
			f.Severity, f.Object = Warning, ""
			f.What = fmt.Sprintf("cannot ask webhook %s: %s", p.Webhook, p.Problem)
			f.Why = "whether the API server reaches it is not known"
			f.Remedy = "run it as somebody who may change what it is asked about; it is a dry run, which stores nothing"
		case p.Answered && (p.Own || p.Open):
			f.Severity, f.What = OK, fmt.Sprintf("Webhook %s answered a dry-run request.", p.Webhook)
		case p.Answered:
			f.Severity, f.What = OK, fmt.Sprintf("A dry-run request that webhook %s is asked about went through.", p.Webhook)
		case !p.Own && p.Object == "":
			f.Severity, f.What = OK, fmt.Sprintf("There is nothing to ask webhook %s about.", p.Webhook)
		default:
			f.Severity = Error
			f.What = fmt.Sprintf("webhook %s did not answer a dry-run request", p.Webhook)
			f.Why = "changes of kinds that fail closed are refused, and all others go by unseen"
			f.Remedy = "see that the manager is ready, that its Service has endpoints, that no network policy keeps the API server from it, " +
				"and that its certificate is trusted"
		}

		out = append(out, f)
	}

	return out
}
