// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeallowance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Observation is what is known of what a window's activateWhen names.
type Observation struct {
	// Known is false where it could not be read.
	Known bool
	// Objects are the pods, or the workload; none where there is none.
	Objects []*unstructured.Unstructured
}

// State is whether a window is in force.
type State struct {
	// Active is true while it is.
	Active bool
	// Reason why it is or is not: one of those of v1alpha1.ConditionActive.
	Reason string
	// Message for a person.
	Message string
	// Again is when time alone changes the state; zero for never.
	Again time.Time
}

// Waits reports whether it takes an [Observation] to know whether a window is in
// force: not before it begins, when it is over, or while it is
// suspended.
func Waits(u *v1alpha1.UpgradeAllowance, now time.Time) bool {
	return u.Spec.ActivateWhen != nil && !u.Spec.Suspend && !now.Before(u.Spec.ValidFrom.Time) && now.Before(u.Spec.ValidUntil.Time)
}

// Evaluate reports whether a window is in force. What is seen matters only where
// the window [Waits] for it.
func Evaluate(u *v1alpha1.UpgradeAllowance, seen Observation, now time.Time) State {
	from, until := u.Spec.ValidFrom.Time, u.Spec.ValidUntil.Time

	if errs := Validate(u); len(errs) > 0 {
		return State{Reason: v1alpha1.ReasonInvalid, Message: errs.ToAggregate().Error()}
	}

	switch {
	case !now.Before(until):
		return State{Reason: v1alpha1.ReasonEnded, Message: "the window ended at " + rfc3339(until)}
	case u.Spec.Suspend:
		return State{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: the window allows nothing", Again: until}
	case now.Before(from):
		return State{Reason: v1alpha1.ReasonNotStarted, Message: "the window begins at " + rfc3339(from), Again: from}
	}

	s := activation(u.Spec.ActivateWhen, seen)
	s.Active, s.Again = s.Reason == v1alpha1.ReasonActive, until

	return s
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// activation reports whether the new logic runs.
func activation(when *v1alpha1.ActivateWhen, seen Observation) State {
	switch {
	case when == nil:
		return State{Reason: v1alpha1.ReasonActive, Message: "the window is in force"}
	case !seen.Known:
		return State{Reason: v1alpha1.ReasonNotObserved, Message: fmt.Sprintf(
			"cannot read %s: check that the manager may list and watch it", Target(when))}
	case when.ControllerRef != nil:
		return workload(when.ControllerRef, seen.Objects)
	default:
		return pods(when, seen.Objects)
	}
}

// Target names what activateWhen reads, for a person.
func Target(when *v1alpha1.ActivateWhen) string {
	if ref := when.ControllerRef; ref != nil {
		return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
	}

	return "the pods in namespace " + when.PodSelector.Namespace
}

func workload(ref *v1alpha1.ControllerRef, objects []*unstructured.Unstructured) State {
	what := fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)

	if len(objects) == 0 {
		return State{Reason: v1alpha1.ReasonControllerNotFound, Message: what + " does not exist"}
	}

	if resource.Deleting(objects[0]) {
		return State{Reason: v1alpha1.ReasonControllerNotFound, Message: what + " is being deleted"}
	}

	seen := resource.Int(objects[0].Object, "status", "observedGeneration")
	if seen < ref.MinGeneration {
		return State{Reason: v1alpha1.ReasonControllerBehind, Message: fmt.Sprintf(
			"%s has observed generation %d of %d", what, seen, ref.MinGeneration)}
	}

	return State{Reason: v1alpha1.ReasonActive, Message: fmt.Sprintf("%s has observed generation %d", what, seen)}
}

// pods judges by all of them. The image comes first: a pod that runs another
// one acts by the old logic, ready or not, and until it is gone.
func pods(when *v1alpha1.ActivateWhen, objects []*unstructured.Unstructured) State {
	var running, leaving []*unstructured.Unstructured

	for _, p := range objects {
		switch phase := resource.String(p.Object, "status", "phase"); {
		case phase == "Succeeded" || phase == "Failed":
		case resource.Deleting(p):
			leaving = append(leaving, p)
		default:
			running = append(running, p)
		}
	}

	if p := first(slices.Concat(running, leaving), func(p *unstructured.Unstructured) bool { return !runs(p, when.Image) }); p != nil {
		return State{Reason: v1alpha1.ReasonPodRunsAnotherImage, Message: fmt.Sprintf(
			"pod %s/%s does not run %s", p.GetNamespace(), p.GetName(), when.Image)}
	}

	if len(running) == 0 {
		return State{Reason: v1alpha1.ReasonNoPods, Message: fmt.Sprintf("no pod runs that podSelector selects in namespace %q",
			when.PodSelector.Namespace)}
	}

	if p := first(running, func(p *unstructured.Unstructured) bool { return !resource.Ready(p) }); p != nil {
		return State{Reason: v1alpha1.ReasonPodNotReady, Message: fmt.Sprintf("pod %s/%s is not ready", p.GetNamespace(), p.GetName())}
	}

	return State{Reason: v1alpha1.ReasonActive, Message: "all pods run " + when.Image}
}

// first is the first by name of those that are as asked for; nil where none is.
func first(list []*unstructured.Unstructured, ok func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	var out *unstructured.Unstructured

	for _, u := range list {
		if ok(u) && (out == nil || cmp.Less(u.GetName(), out.GetName())) {
			out = u
		}
	}

	return out
}
