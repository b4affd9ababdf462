// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/right"
)

// inForce checks what the manager says of objects of ours.
func inForce(list List, why string) []Finding {
	out := make([]Finding, 0, len(list.Items))

	for _, u := range list.Items {
		c, ok := resource.ConditionOf(u, "Ready")
		f := Finding{Severity: Error, Object: name(u), Why: why}

		switch {
		case !ok || resource.Int(u.Object, "status", "observedGeneration") < u.GetGeneration():
			f.Severity, f.What = Warning, "the manager has not looked at its present generation"
			f.Remedy = "wait a moment; if it stays, see that the manager is at work"
		case !c.True():
			f.What = fmt.Sprintf("it is not in force: %s: %s", c.Reason, c.Message)
			f.Remedy = "correct what the message names; a kind that is unknown takes its CRD"

			if c.Reason == v1alpha1.ReasonRightsMissing {
				f.Remedy = right.Remedy
			}
		default:
			continue
		}

		out = append(out, f)
	}

	return out
}

// policies checks AllowancePolicies.
func policies(s *State) []Finding {
	list := s.Lists[AllowancePolicies]
	out := inForce(list, "what it allows is held or refused")

	for _, u := range list.Items {
		if c, ok := resource.ConditionOf(u, "Gated"); ok && c.Status == "False" {
			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: c.Message, Why: "its provider acts whenever it likes",
				Remedy: "take a provider, or a version of it, that supports management policies",
			})
		}

		for _, w := range maps(u.Object, "status", "typeChecking") {
			f := Finding{Severity: Warning, Object: name(u), What: fmt.Sprintf("%v: %v", w["field"], w["warning"])}
			f.Why, f.Remedy = checked(f.What)
			out = append(out, f)
		}
	}

	return out
}

// bindings checks AllowanceBindings, and that not everybody makes them who may make
// objects in a namespace.
func bindings(s *State) []Finding {
	list := s.Lists[AllowanceBindings]
	out := inForce(list, "its subjects initiate nothing by it")

	for _, u := range list.Items {
		for _, w := range maps(u.Object, "status", "typeChecking") {
			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: fmt.Sprintf("%v: %v", w["field"], w["warning"]),
				Why:    "a condition that fails lets nobody initiate",
				Remedy: "compare conditions with kubectl explain, and take out subjects that initiate nothing",
			})
		}
	}

	if len(list.Items) > 0 && s.Lists[GuardBindings].find(v1alpha1.NameBindGuard) == nil {
		out = append(out, Finding{
			Severity: Error, Object: "ValidatingAdmissionPolicyBinding " + v1alpha1.NameBindGuard, What: "it is not there",
			Why: "whoever may make an AllowanceBinding has themselves initiate by any policy that accepts some", Remedy: restart,
		})
	}

	return out
}

// checked says what a warning about a policy means, and what to do: what it names may
// not exist, or nobody can make use of it.
func checked(warning string) (why, remedy string) {
	switch {
	case strings.Contains(warning, "nobody can make use of"):
		return "nothing is ever allowed by it", "give one of its subjects mayInitiate: true, or allow by another policy what this one is about"
	case strings.Contains(warning, "did you mean"):
		return "it never matches as it is", "correct it as the message says; who stored a change meanwhile has to store it once more"
	default:
		return "the expression or field may never match", "compare it with kubectl explain"
	}
}

// enforcements checks Enforcements and how long their exceptions last.
func enforcements(s *State) []Finding {
	list := s.Lists[Enforcements]
	broken, others := refusing(list)
	out := slices.Concat(inForce(broken, "every change that it is about is refused"), inForce(others, "what it should refuse goes through"))

	for _, u := range list.Items {
		for _, w := range maps(u.Object, "status", "typeChecking") {
			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: fmt.Sprintf("%v: %v", w["field"], w["warning"]),
				Why:    "where the condition fails, failurePolicy Fail takes it for met, and Ignore for not met",
				Remedy: "compare it with kubectl explain",
			})
		}

		for _, e := range maps(u.Object, "spec", "exceptions") {
			until, err := time.Parse(time.RFC3339, resource.String(e, "until"))
			if err != nil || s.Now.Before(until) {
				continue
			}

			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: fmt.Sprintf("exception %v ended at %s", e["name"], until.UTC().Format(time.RFC3339)),
				Why: "those it names are held to the rules again", Remedy: "take it out, or give it a later end",
			})
		}
	}

	return out
}

// refusing separates the Enforcements that refuse all that they are about, because
// they do not compile, from the others.
func refusing(list List) (broken, others List) {
	for _, u := range list.Items {
		e := &v1alpha1.Enforcement{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, e); err == nil {
			if compiled, _ := enforcement.Compile(e); compiled.Refuses() {
				broken.Items = append(broken.Items, u)

				continue
			}
		}

		others.Items = append(others.Items, u)
	}

	return broken, others
}

// windows checks UpgradeAllowances.
func windows(s *State) []Finding {
	list := s.Lists[UpgradeAllowances]
	out := inForce(list, "what it should let through is held or refused")

	for _, u := range list.Items {
		until, err := time.Parse(time.RFC3339, resource.String(u.Object, "spec", "validUntil"))
		if suspended, _ := resource.Value(u.Object, "spec", "suspend"); err == nil && suspended == true && s.Now.Before(until) {
			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: "it is suspended", Why: "it allows nothing, whatever its time is",
				Remedy: "set spec.suspend to false, or delete it",
			})
		}

		if active, _ := resource.Value(u.Object, "status", "active"); err == nil && s.Now.After(until.Add(time.Minute)) {
			f := Finding{
				Severity: Warning, Object: name(u), What: "it ended at " + until.UTC().Format(time.RFC3339),
				Why: "it allows nothing any more", Remedy: "delete it, or open another one",
			}

			if active == true {
				f.Severity, f.What = Error, f.What+", and still says it is active"
				f.Why, f.Remedy = "nobody keeps its status", "see that the manager is at work"
			}

			out = append(out, f)
		}
	}

	return out
}

// providers checks providers, and by their managed resources whether they say
// what they observed.
func providers(s *State) []Finding {
	var out []Finding

	for _, u := range s.Lists[Providers].Items {
		if c, ok := resource.ConditionOf(u, "Healthy"); ok && !c.True() {
			out = append(out, Finding{
				Severity: Warning, Object: name(u), What: fmt.Sprintf("it is not healthy: %s %s", c.Reason, c.Message),
				Why: "its gates stay open until it has applied what was allowed", Remedy: "kubectl describe provider " + u.GetName(),
			})
		}
	}

	reported := map[string]bool{}

	for _, u := range s.Managed {
		c, ok := resource.ConditionOf(u, resource.ConditionSynced)
		if kind := u.GroupVersionKind().GroupKind().String(); ok && !reported[kind] && c.ObservedGeneration == 0 {
			reported[kind] = true

			out = append(out, Finding{
				Severity: Warning, Object: kind,
				What: "its provider sets no observedGeneration on condition Synced, so it was built on crossplane-runtime before 1.20",
				Why:  "when a change has landed can only be told from status.atProvider, and its gates may be open for longer",
				Remedy: "take a newer version of the provider; until then name the kind with the manager's --gate-without-late-initialize " +
					"and in the function's withoutLateInitialize",
			})
		}
	}

	return out
}
