// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/admission"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/enforcement"
)

// LongWindow is for how long a window may be in force before it is no upgrade any more.
const LongWindow = 7 * 24 * time.Hour

// ReasonUnobserved is why an object is not ready of which the manager has not looked at
// the present generation.
const ReasonUnobserved = "Unobserved"

// Config is what is asked for: policies, windows and Enforcements, and the bindings of
// policies.
type Config struct {
	Admission admission.Config

	Bindings []v1alpha1.AllowanceBinding
}

// Unready says why an object of a generation is not in force, by its conditions; false
// where it is.
func Unready(generation int64, conditions []metav1.Condition) (reason, message string, not bool) {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)

	switch {
	case c == nil || c.ObservedGeneration < generation:
		return ReasonUnobserved, "the manager has not looked at its present generation", true
	case c.Status == metav1.ConditionTrue:
		return "", "", false
	default:
		return c.Reason, c.Message, true
	}
}

// findings judges all of it.
func (c Config) findings(now time.Time) []Finding {
	out := make([]Finding, 0, len(c.Admission.Policies))

	for i := range c.Admission.Policies {
		p := &c.Admission.Policies[i]
		out = append(out, notReady(v1alpha1.KindPolicy, &p.ObjectMeta, p.Status.Conditions)...)
		out = append(out, shadowed(p)...)
	}

	for i := range c.Bindings {
		out = append(out, notReady(v1alpha1.KindBinding, &c.Bindings[i].ObjectMeta, c.Bindings[i].Status.Conditions)...)
	}

	for i := range c.Admission.Enforcements {
		e := &c.Admission.Enforcements[i]
		out = append(out, notReady(v1alpha1.KindEnforcement, &e.ObjectMeta, e.Status.Conditions)...)
		out = append(out, lenient(e)...)
		out = append(out, excepting(e, now)...)
	}

	for i := range c.Admission.Windows {
		w := &c.Admission.Windows[i]
		out = append(out, notReady(v1alpha1.KindUpgrade, &w.ObjectMeta, w.Status.Conditions)...)
		out = append(out, open(w, now)...)
	}

	return out
}

// refOfOurs names an object of a kind of ours.
func refOfOurs(kind string, m *metav1.ObjectMeta) Ref {
	return Ref{APIVersion: v1alpha1.GroupVersion().String(), Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}

// notReady judges whether an object of ours is in force.
func notReady(kind string, m *metav1.ObjectMeta, conditions []metav1.Condition) []Finding {
	reason, message, not := Unready(m.Generation, conditions)
	if !not {
		return nil
	}

	f := newFinding(NotReady, refOfOurs(kind, m), fmt.Sprintf("it is not in force: %s: %s", reason, message),
		"correct what the message names; kubectl kausality doctor says more")

	if reason == ReasonUnobserved {
		f.Severity, f.Result = Low, Warn
		f.Remedy = "wait a moment; if it stays, see that the manager is at work"
	} else if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		f = f.since(c.LastTransitionTime.Time)
	}

	return []Finding{f}
}

// shadowed judges whether a policy is in Shadow mode, all of it or a condition.
func shadowed(p *v1alpha1.AllowancePolicy) []Finding {
	about := refOfOurs(v1alpha1.KindPolicy, &p.ObjectMeta)

	if p.Spec.EnforcementMode == v1alpha1.EnforcementModeShadow {
		return []Finding{newFinding(Shadow, about, "its enforcementMode is Shadow",
			"look at what it would allow, in metrics and the log, and set spec.enforcementMode to Enforce, or delete it")}
	}

	var out []Finding

	for _, c := range p.Spec.Match.MatchConditions {
		if c.EnforcementMode != v1alpha1.EnforcementModeShadow {
			continue
		}

		f := newFinding(Shadow, about, fmt.Sprintf("the enforcementMode of its condition %q is Shadow", c.Name),
			"look at what it would prevent, in metrics and the log, and set the condition's enforcementMode to Enforce, or delete it")
		f.Part, f.Severity = c.Name, Low
		f.Why = "it is taken for met: what it is to prevent is allowed"
		out = append(out, f)
	}

	return out
}

// lenient judges whether an Enforcement refuses or holds anything.
func lenient(e *v1alpha1.Enforcement) []Finding {
	if strict(e.Spec.ValidationActions) {
		return nil
	}

	return []Finding{newFinding(WarnOnly, refOfOurs(v1alpha1.KindEnforcement, &e.ObjectMeta),
		fmt.Sprintf("its validationActions are %v", e.Spec.ValidationActions),
		"set spec.validationActions to [Deny] or [Hold], once its reports show what it would refuse")}
}

// strict reports whether any of some actions keeps what is not allowed from being stored.
func strict(actions []v1alpha1.ValidationAction) bool {
	return slices.ContainsFunc(actions, func(a v1alpha1.ValidationAction) bool {
		return enforcement.Strictness(a) >= enforcement.Strictness(v1alpha1.ActionHold)
	})
}

// excepting judges whom an Enforcement excepts now.
func excepting(e *v1alpha1.Enforcement, now time.Time) []Finding {
	var out []Finding

	for _, x := range e.Spec.Exceptions {
		if !now.Before(x.Until.Time) {
			continue
		}

		who := make([]string, len(x.Subjects))
		for i, s := range x.Subjects {
			who[i] = string(s.Kind) + " " + s.Name
		}

		f := newFinding(ExceptionOpen, refOfOurs(v1alpha1.KindEnforcement, &e.ObjectMeta),
			fmt.Sprintf("exception %s: %s may change %s until %s: %s", x.Name, strings.Join(who, " and "), strings.Join(x.Mutations, " and "),
				x.Until.UTC().Format(time.RFC3339), x.Reason),
			"take it out of spec.exceptions as soon as it has served")
		f.Part = x.Name
		out = append(out, f)
	}

	return out
}

// open judges whether a window is in force.
func open(w *v1alpha1.UpgradeAllowance, now time.Time) []Finding {
	if !allowance.InForce(w, now) {
		return nil
	}

	texts := make([]string, len(w.Spec.Allow))
	for i, p := range w.Spec.Allow {
		texts[i] = strings.TrimPrefix(p.Kind+" ", " ") + strings.Join(p.Mutations, " and ")
	}

	since := w.Spec.ValidFrom.Time
	if c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionActive); c != nil && c.Status == metav1.ConditionTrue &&
		c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}

	f := newFinding(WindowOpen, refOfOurs(v1alpha1.KindUpgrade, &w.ObjectMeta),
		fmt.Sprintf("it is open for %s until %s: %s", w.Spec.ServiceAccount, w.Spec.ValidUntil.UTC().Format(time.RFC3339), joined(texts)),
		"set spec.suspend to true, or delete it, once the upgrade is done").since(since)

	if now.Sub(since) > LongWindow {
		f.Severity, f.Result = Medium, Fail
	}

	return []Finding{f}
}
