// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/policy"
)

// render writes an explanation for people.
func (d explanationDocument) render() string {
	var out strings.Builder

	fmt.Fprintf(&out, "%s (%s, generation %d), changed by %s\n", refName(d.Object), d.Object.APIVersion, d.Object.Generation, d.User)
	d.renderParent(&out)

	for _, e := range d.Changes {
		fmt.Fprintf(&out, "\n%s: %s\n", e.Field, e.text(d.Action))

		for _, m := range e.Missing {
			fmt.Fprintf(&out, "- %s\n", m)
		}
	}

	out.WriteString("\nIn the order in which it is tried:\n")
	d.renderAllowances(&out)
	d.renderWindows(&out)
	d.renderPolicies(&out)
	d.renderPhase(&out)
	d.renderEnforcements(&out)

	for _, p := range d.Problems {
		fmt.Fprintf(&out, "\nNot known: %s\n", p)
	}

	return out.String()
}

// refName names an object for people.
func refName(ref objectRef) string {
	if ref.Namespace != "" {
		return ref.Kind + " " + ref.Namespace + "/" + ref.Name
	}

	return ref.Kind + " " + ref.Name
}

func (d explanationDocument) renderParent(out *strings.Builder) {
	switch {
	case d.Parent != nil:
		fmt.Fprintf(out, "Its parent is %s.\n", refName(*d.Parent))
	case d.Phase != "":
		out.WriteString("Its parent is gone.\n")
	default:
		out.WriteString("It has no parent: it is a root.\n")
	}
}

func (d explanationDocument) renderAllowances(out *strings.Builder) {
	if d.Parent == nil {
		return
	}

	section(out, "Allowances of its parent", len(d.Allowances))

	for _, a := range d.Allowances {
		fmt.Fprintf(out, "- %s, requested by %s (generation %d%s)%s\n",
			whatOf(a.Allowance), a.Initiator, a.Generation, byPolicy(a.Allowance), servesText(a.Missing))
	}

	if len(d.Giving) > 0 {
		out.WriteString("  These policies give one:\n")
	}

	for _, p := range d.Giving {
		fmt.Fprintf(out, "  - %s, for %s\n", p.Name, strings.Join(each(p.Fields, func(f explainedField) string { return f.Path }), ", "))
	}
}

// section writes the head of a list.
func section(out *strings.Builder, head string, n int) {
	if n == 0 {
		fmt.Fprintf(out, "\n%s: none\n", head)

		return
	}

	fmt.Fprintf(out, "\n%s:\n", head)
}

// servesText says whether something serves.
func servesText(missing string) string {
	if missing == "" {
		return ": serves"
	}

	return ": does not serve, " + missing
}

func (d explanationDocument) renderWindows(out *strings.Builder) {
	section(out, "UpgradeAllowances", len(d.Windows))

	for _, w := range d.Windows {
		fmt.Fprintf(out, "- %s, %s to %s, for %s%s\n", w.Name, w.ValidFrom.UTC().Format(time.RFC3339), w.ValidUntil.UTC().Format(time.RFC3339),
			w.ServiceAccount, servesText(w.Missing))
	}
}

func (d explanationDocument) renderPolicies(out *strings.Builder) {
	section(out, "AllowancePolicies about "+d.Object.Kind, len(d.Policies)+len(d.Broken))

	for _, p := range d.Policies {
		p.render(out)
	}

	for _, b := range d.Broken {
		fmt.Fprintf(out, "- %s: does not compile, and grants nothing: %s\n", b.Name, strings.Join(b.Fields, ", "))
	}
}

// render writes one policy.
func (p explainedPolicy) render(out *strings.Builder) {
	var more []string
	if p.Owner != "" {
		more = append(more, "owner "+p.Owner)
	}

	if p.EnforcementMode == string(v1alpha1.EnforcementModeShadow) {
		more = append(more, "in Shadow mode: it decides nothing")
	}

	head := p.Name
	if len(more) > 0 {
		head += " (" + strings.Join(more, "; ") + ")"
	}

	fmt.Fprintf(out, "- %s\n  fields: %s\n", head, strings.Join(each(p.Fields, explainedField.text), ", "))

	if len(p.ExcludeFields) > 0 {
		fmt.Fprintf(out, "  but not: %s\n", strings.Join(p.ExcludeFields, ", "))
	}

	renderResults(out, p.Conditions)

	for _, b := range p.Bindings {
		fmt.Fprintf(out, "  AllowanceBinding %s: %s\n", b.Name, holds(b.Met))
		renderResults(out, b.Conditions)
	}

	p.renderSubjects(out)
	fmt.Fprintf(out, "  then may follow: %s\n", cmp.Or(strings.Join(p.Allow, "; "), "nothing"))
}

// text is a field, and what it covers where that is not the field itself.
func (f explainedField) text() string {
	if len(f.Covers) == 0 || len(f.Covers) == 1 && f.Covers[0] == f.Path {
		return f.Path
	}

	return fmt.Sprintf("%s (covers %s)", f.Path, strings.Join(f.Covers, ", "))
}

func holds(met bool) string {
	if met {
		return "holds"
	}

	return "does not hold"
}

// renderResults writes conditions.
func renderResults(out *strings.Builder, list []policy.Result) {
	for _, r := range list {
		what := r.Field
		if r.Name != "" {
			what = fmt.Sprintf("condition %q", r.Name)
		}

		if r.Text != "" {
			what += ": " + r.Text
		}

		if r.Parameter != "" {
			what += " (with " + r.Parameter + ")"
		}

		fmt.Fprintf(out, "  %s: %s\n", what, resultText(r))
	}
}

// resultText says what came of a condition.
func resultText(r policy.Result) string {
	text := map[policy.Outcome]string{
		policy.OutcomeMet: "holds", policy.OutcomeNotMet: "does not hold", policy.OutcomeFailed: "cannot be evaluated",
		policy.OutcomeUnknown: "is not known",
	}[r.Outcome]

	if r.Missing != "" {
		text += ", " + r.Missing
	}

	if r.Shadow {
		text += " (in Shadow mode: it decides nothing)"
	}

	if r.Start {
		text += " (decides only where a chain starts)"
	}

	return text
}

// renderSubjects writes who may initiate, and who may carry a change on.
func (p explainedPolicy) renderSubjects(out *strings.Builder) {
	var initiate, carry []string

	for _, s := range p.Subjects {
		text := policy.Describe([]v1alpha1.Subject{s.Subject}, func(v1alpha1.Subject) bool { return true })
		if s.Binding != "" {
			text += " (AllowanceBinding " + s.Binding + ")"
		}

		if s.User {
			text += " (this user)"
		}

		if s.MayInitiate {
			initiate = append(initiate, text)
		} else {
			carry = append(carry, text)
		}
	}

	fmt.Fprintf(out, "  may initiate: %s\n", cmp.Or(strings.Join(initiate, ", "), policy.Nobody))

	switch {
	case p.Approvals == 1:
		out.WriteString("  then another person has to approve what follows\n")
	case p.Approvals > 1:
		fmt.Fprintf(out, "  then %d other people have to approve what follows\n", p.Approvals)
	}

	if !p.Initiates && p.Missing != "" {
		fmt.Fprintf(out, "  %s\n", p.Missing)
	}

	if p.BindingMode != string(v1alpha1.BindingModeNone) {
		fmt.Fprintf(out, "  AllowanceBindings: %s\n", strings.ToLower(p.BindingMode))
	}

	fmt.Fprintf(out, "  may carry it on: %s\n", cmp.Or(strings.Join(carry, ", "), "anybody"))
}

// renderPhase writes what the phase of the parent allows.
func (d explanationDocument) renderPhase(out *strings.Builder) {
	text := map[string]string{
		"Initializing": "Initializing: its controller builds up what it is made of",
		"Steady":       "Steady: it allows nothing by itself",
		"Deleting":     "Deleting: what it is made of may go, managed resources with a grant alone",
		"Gone":         "Gone: what is left of it may go, managed resources with a grant alone",
	}[d.Phase]
	if text != "" {
		fmt.Fprintf(out, "\nPhase of its parent: %s\n", text)
	}
}

func (d explanationDocument) renderEnforcements(out *strings.Builder) {
	section(out, "Enforcements", len(d.Enforcements))

	for _, e := range d.Enforcements {
		governs := "governs it"
		if !e.Governs {
			governs = "its selectors or conditions leave it out"
		}

		fmt.Fprintf(out, "- %s: %s; %s, failurePolicy %s\n", e.Name, governs, e.Action, e.FailurePolicy)

		if e.Problem != "" {
			fmt.Fprintf(out, "  %s\n", e.Problem)
		}

		for _, x := range e.Exceptions {
			fmt.Fprintf(out, "  exception %s until %s (%s)%s\n", x.Name, x.Until.UTC().Format(time.RFC3339), x.Reason, servesText(x.Missing))
		}
	}

	fmt.Fprintf(out, "\nA change that nothing allows %s.\n", map[string]string{
		"": "is saved with a warning, and not applied", string(v1alpha1.ActionDeny): "is refused (Deny)",
		string(v1alpha1.ActionHold):  "is reverted, and the rest is stored (Hold)",
		string(v1alpha1.ActionWarn):  "is stored, with a warning (Warn)",
		string(v1alpha1.ActionAudit): "is stored, and recorded (Audit)",
	}[d.Action])
}
