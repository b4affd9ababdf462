// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// reinstall is the remedy for what comes with the package.
const reinstall = "install Kausality's CRDs again, of the manager's version (package/crds)"

// restart is the remedy for what the manager makes.
const restart = "see the manager's log, and that it runs with --enable-webhook and --enable-gates: it makes it again within a minute"

// missing is what is wrong with what is not there.
const missing = "it is missing"

// definitions checks our own kinds.
func definitions(s *State) []Finding {
	ours := v1alpha1.Definitions()
	out := make([]Finding, 0, len(ours))

	for _, d := range ours {
		f := Finding{
			Severity: Error, Object: "CustomResourceDefinition " + d.Name(),
			Why: "nothing can be allowed or enforced without this kind", Remedy: reinstall,
		}

		if d.Unguarded {
			f.Why = "what is held cannot be looked at in one place, and approved, without this kind"
		}

		crd := s.Lists[CRDs].find(d.Name())

		switch {
		case crd == nil:
			f.What = "it is not installed"
		case !holds(crd, "Established"):
			f.What = "the API server does not serve it"
		case !slices.ContainsFunc(maps(crd.Object, "spec", "versions"), func(v map[string]any) bool {
			served, _ := v["served"].(bool)

			return v["name"] == v1alpha1.Version && served
		}):
			f.What = "it does not serve version " + v1alpha1.Version
		default:
			continue
		}

		out = append(out, f)
	}

	return out
}

func holds(u *unstructured.Unstructured, condition string) bool {
	c, _ := resource.ConditionOf(u, condition)

	return c.True()
}

// webhooks checks the webhook configurations.
func webhooks(s *State) []Finding {
	var out []Finding

	for _, w := range []struct {
		source    Source
		kind, why string
	}{
		{Mutating, "MutatingWebhookConfiguration", "changes are not noted, and nothing may follow from them"},
		{Validating, "ValidatingWebhookConfiguration", "nothing is refused, and policies are not checked"},
	} {
		f := Finding{Severity: Error, Object: w.kind + " " + v1alpha1.NameWebhooks, Why: w.why, Remedy: restart}

		u := s.Lists[w.source].find(v1alpha1.NameWebhooks)
		if u == nil {
			f.What = missing
			out = append(out, f)

			continue
		}

		for _, hook := range maps(u.Object, fieldWebhooks) {
			if resource.String(hook, fieldClient, fieldCA) == "" {
				f.Severity, f.What = Warning, fmt.Sprintf("webhook %v has no CA bundle", hook["name"])
				f.Why = "the API server trusts the webhook only if its certificate is signed by a CA that it trusts anyway"
				out = append(out, f)
			}
		}
	}

	return out
}

// guards checks the ValidatingAdmissionPolicies of the kinds that policies name, and those of
// approvals.
func guards(s *State) []Finding {
	wanted, out := gatedKinds(s), approvalGuards(s)

	for _, g := range []struct{ name, why string }{
		{v1alpha1.NameWriterGuard, "anybody could open a gate while the manager is away"},
		{v1alpha1.NameDeleteGuard, "a managed resource could be deleted and its external object be orphaned"},
	} {
		f := Finding{Severity: Error, Object: "ValidatingAdmissionPolicy " + g.name, Why: g.why, Remedy: restart}
		policy, binding := s.Lists[Guards].find(g.name), s.Lists[GuardBindings].find(g.name)

		switch {
		case len(wanted) == 0:
			continue
		case policy == nil:
			f.What = missing
		case binding == nil:
			f.Object = "ValidatingAdmissionPolicyBinding " + g.name
			f.What = missing
		case resource.String(binding.Object, "spec", "policyName") != g.name ||
			!slices.Contains(resource.Strings(binding.Object, "spec", "validationActions"), "Deny"):
			f.Object = "ValidatingAdmissionPolicyBinding " + g.name
			f.What = "it does not deny what the policy is about"
		case resource.String(policy.Object, "spec", "failurePolicy") == "Ignore":
			f.What = "it lets through what it cannot evaluate"
		default:
			for _, k := range wanted {
				if !covers(policy, k) {
					uncovered := f
					uncovered.What = "it does not cover " + k.String()
					out = append(out, uncovered)
				}
			}

			continue
		}

		out = append(out, f)
	}

	return out
}

// covers reports whether a guard is about a kind.
func covers(guard *unstructured.Unstructured, k kind) bool {
	return slices.ContainsFunc(maps(guard.Object, "spec", "matchConstraints", "resourceRules"), func(rule map[string]any) bool {
		groups, resources := resource.Strings(rule, "apiGroups"), resource.Strings(rule, "resources")

		return (slices.Contains(groups, k.group) || slices.Contains(groups, "*")) &&
			(slices.Contains(resources, k.resource) || slices.Contains(resources, "*"))
	})
}

// function checks that the composition function is there.
func function(s *State) []Finding {
	f := Finding{
		Severity: Error, Object: "Function " + s.Functions[0],
		Why:    "Compositions that run it fail, and those that do not are not gated",
		Remedy: "install the package function-kausality, or name it as it is installed with --function-name",
	}

	if s.Lists[Functions].Absent {
		f.Severity, f.Object, f.What = Warning, "", "Crossplane's functions are not served"
		f.Why, f.Remedy = "XRs are not gated", "install Crossplane, if this cluster is to have it"

		return []Finding{f}
	}

	var out []Finding

	found := false

	for _, n := range s.Functions {
		u := s.Lists[Functions].find(n)
		if u == nil {
			continue
		}

		found = true

		for _, typ := range []string{"Installed", "Healthy"} {
			c, _ := resource.ConditionOf(u, typ)
			if c.True() {
				continue
			}

			bad := f
			bad.Object = "Function " + n
			bad.What = fmt.Sprintf("it is not %s: %s %s", typ, c.Reason, c.Message)
			bad.Remedy = "kubectl describe function " + n
			out = append(out, bad)
		}
	}

	if !found {
		f.What = "it is not installed"
		out = append(out, f)
	}

	return out
}
