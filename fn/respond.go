// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"errors"
	"fmt"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/composition"
	"github.com/kausality-io/kausality-crossplane/engine/composition/condition"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/message"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// errUnallowed is the cause when mode Fatal meets an unallowed change.
var errUnallowed = errors.New("a change is not allowed, and the step's mode is Fatal")

// errNoConditions is the cause when Crossplane does not store what it is given.
var errNoConditions = errors.New("this Crossplane does not store the conditions of functions, and nothing shows held changes: " +
	"use Crossplane 1.17 or newer")

// unanswered is what is under way where Crossplane sent no policies.
const unanswered = "nothing is allowed without the required AllowancePolicies: use Crossplane 1.15 or newer, " +
	"or crossplane render --required-resources"

// respond writes what was decided into the response.
func (s *state) respond(rsp *fnv1.RunFunctionResponse) error {
	held := s.held()

	if s.input.Mode == v1alpha1.ModeFatal && len(held) > 0 && !s.awaited { // Nothing is sent after a fatal result.
		return fmt.Errorf("%w: %s", errUnallowed, held[0])
	}

	// The request shares its desired state with the response, and is not ours
	// to change.
	was := rsp.GetDesired()
	rsp.Desired = &fnv1.State{Composite: was.GetComposite(), Resources: make(map[string]*fnv1.Resource, len(s.names))}

	for _, name := range s.names {
		r, err := s.respondResource(was.GetResources()[name], name)
		if err != nil {
			return err
		}

		if r != nil {
			rsp.Desired.Resources[name] = r
		}
	}

	if slices.ContainsFunc(s.names, func(name string) bool { return s.outcomes[name].Unbuilt }) {
		rsp.Desired.Composite = &fnv1.Resource{
			Resource: was.GetComposite().GetResource(), ConnectionDetails: was.GetComposite().GetConnectionDetails(), Ready: fnv1.Ready_READY_FALSE,
		}
	}

	s.report(rsp, held)

	return nil
}

// respondResource makes one resource's desired state, out of what earlier
// steps said of it; nil leaves it out.
func (s *state) respondResource(was *fnv1.Resource, name string) (*fnv1.Resource, error) {
	out := s.outcomes[name]
	if out.Desired == nil {
		return nil, nil //nolint:nilnil // Left out, which is no error.
	}

	var decoded map[string]any
	if u := s.desired[name]; u != nil {
		decoded = u.Object
	}

	st, err := encode(out.Desired.Object, was.GetResource(), decoded)
	if err != nil {
		return nil, fmt.Errorf("cannot write desired composed resource %q: %w", name, err)
	}

	r := &fnv1.Resource{Resource: st, Ready: was.GetReady(), ConnectionDetails: was.GetConnectionDetails()}
	if !out.Kept {
		return r, nil
	}

	// No step before us reports whether a resource is ready that none desires.
	if c, ok := resource.ConditionOf(s.observed[name], resource.ConditionReady); ok && c.True() {
		r.Ready = fnv1.Ready_READY_TRUE
	}

	return r, nil
}

// report sets the condition, and adds events when it says something new.
func (s *state) report(rsp *fnv1.RunFunctionResponse, held []condition.Held) {
	f := s.findings(rsp, held)
	status := condition.Summarize(s.xr, f)

	set := response.ConditionTrue
	if !status.Allowed {
		set = response.ConditionFalse
	}

	set(rsp, v1alpha1.ConditionKausality, status.Reason).WithMessage(status.Message).TargetCompositeAndClaim()

	news := s.reportState(rsp, held, &status)

	if _, ok := resource.ConditionOf(s.xr, v1alpha1.ConditionKausality); !ok && s.composedBefore() && !s.conditions {
		response.Warning(rsp, errNoConditions).TargetComposite().WithReason(string(v1alpha1.EventReasonInput))
	}

	s.overdue, s.settled = status.Overdue(), status.Allowed && status.Progress.Phase == v1alpha1.PhaseSettled

	list(rsp, v1alpha1.EventReasonBaseline, "First run: these fields differ from the stored state, and count as desired: ",
		s.each(func(o composition.Result) []string { return o.Baseline }))
	list(rsp, v1alpha1.EventReasonRepaired, "Changed or deleted by hand, and reverted to the Composition: ", s.repaired())

	if !news {
		return
	}

	for _, p := range f.Problems {
		response.Warning(rsp, errors.New(message.Cut(p, message.Most))).TargetComposite().WithReason(string(v1alpha1.EventReasonInput))
	}

	if status.Overdue() {
		response.Warning(rsp, errors.New(status.Message)).TargetComposite().WithReason(string(v1alpha1.EventReasonNotSettled))
	}

	for _, d := range f.Delegated {
		response.Normal(rsp, message.Cut(d, message.Most)).TargetComposite().WithReason(string(v1alpha1.EventReasonLeft))
	}

	for _, h := range held {
		response.Warning(rsp, errors.New(h.Event(s.xr))).TargetCompositeAndClaim().WithReason(string(v1alpha1.EventReasonHeld))
	}
}

// list tells all lines of something, in as many events as it takes.
func list(rsp *fnv1.RunFunctionResponse, reason v1alpha1.EventReason, what string, lines []string) {
	for _, page := range message.Pages(lines, message.Most-len(what)) {
		response.Normal(rsp, what+page).TargetComposite().WithReason(string(reason))
	}
}

// reportState sets the condition by which the manager, and the next run, know what is held and how far the XR is. It reports
// whether there is something new.
func (s *state) reportState(rsp *fnv1.RunFunctionResponse, held []condition.Held, status *condition.Status) bool {
	var passed []condition.Passed
	for _, name := range s.names {
		passed = slices.Concat(passed, s.outcomes[name].Passed, s.outcomes[name].Awaiting)
	}

	records := s.base.Basis.RecordsEdits(s.xr, s.base.Resources.Of(s.xr.GroupVersionKind().GroupKind()))
	state := condition.List(s.xr, status, s.observed, held, passed, records)

	composition.Remember(&state, s.base.Was, s.observed, s.desired, s.outcomes, s.base.Basis.Now)

	set, reason := response.ConditionTrue, v1alpha1.ReasonAllowed
	if len(state.Changes) > 0 {
		set, reason = response.ConditionFalse, v1alpha1.ReasonHeld
	}

	set(rsp, v1alpha1.ConditionState, reason).WithMessage(resource.FormatState(state))

	was, known := resource.StateOf(s.xr)

	return known && was.News != state.News || !known && state.News != ""
}

// findings are what was found out about the XR in this run.
func (s *state) findings(rsp *fnv1.RunFunctionResponse, held []condition.Held) condition.Findings {
	pending, unasked := s.pending(), ""
	if !s.answered {
		unasked = unanswered
	}

	return condition.Findings{
		Ready: s.ready(rsp.GetDesired()), Composed: len(s.names),
		Held: held, Pending: pending, Unanswered: unasked, Problems: s.unfixed(),
		Delegated: s.each(func(o composition.Result) []string { return o.Delegated }),
		Status:    condition.Report(s.xr, s.wantedXR, s.answered && len(pending) == 0),
		Limit:     s.limit, Now: s.base.Basis.Now,
	}
}

// each lists fields of all composed resources, by resource.
func (s *state) each(of func(composition.Result) []string) []string {
	var out []string

	for _, name := range s.names {
		for _, field := range of(s.outcomes[name]) {
			u := s.observed[name]
			out = append(out, fmt.Sprintf("%s %s: %s", u.GetKind(), u.GetName(), field))
		}
	}

	return out
}

// repaired lists what is put back, by resource.
func (s *state) repaired() []string {
	var out []string

	for _, name := range s.names {
		for _, field := range s.outcomes[name].Repaired {
			out = append(out, composition.DescribeRepair(name, s.outcomes[name].Desired, field))
		}
	}

	return out
}

// ready reports whether the XR is ready, or will be once Crossplane has read this:
// it judges by what the pipeline says of the XR, or else of every resource.
func (s *state) ready(desired *fnv1.State) bool {
	if resource.Ready(s.xr) {
		return true
	}

	if r := desired.GetComposite().GetReady(); r != fnv1.Ready_READY_UNSPECIFIED {
		return r == fnv1.Ready_READY_TRUE
	}

	for _, r := range desired.GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			return false
		}
	}

	return true
}

// unfixed are the problems that somebody has to fix, each once, in order:
// Crossplane sends policies in any.
func (s *state) unfixed() []string {
	out := make([]string, len(s.problems))
	for i, p := range s.problems {
		out[i] = p.Error()
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// composedBefore reports whether the function has seen a composed resource before.
func (s *state) composedBefore() bool {
	for _, u := range s.observed {
		if management.HasDesired(u) {
			return true
		}
	}

	return false
}

func (s *state) pending() []string {
	var out []string

	for _, name := range s.names {
		if p := s.outcomes[name].Pending; p != "" {
			out = append(out, p)
		}
	}

	return out
}
