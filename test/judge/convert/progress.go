// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// formerState is the type of the condition that [v1alpha1.ConditionState] takes the place of.
const formerState = "KausalityHeldChanges"

// message is how the message of the Kausality condition started.
var message = regexp.MustCompile(`^generation (\d+): (settled|initializing|in progress)\b(?:, request (\d+)\b)?`)

// meaning is what an object said of its progress before, and says of it now.
type meaning struct {
	reports bool
	settled v1alpha1.Settled
	ready   bool
}

var errMeaning = errors.New("it does not mean the same")

// Object converts an object of the log.
func Object(o map[string]any) error {
	if o == nil {
		return nil
	}

	u := &unstructured.Unstructured{Object: o}
	was := before(u)

	mark(u, was)

	if resource.IsComposite(u) && !resource.IsClaim(u) {
		convertState(u)
	}

	is := now(u)
	if resource.IsClaim(u) { // It showed what its XR said of itself.
		is.ready = was.ready
	}

	if is != was {
		return fmt.Errorf("%s %s: %w: %+v, and %+v", u.GetKind(), u.GetName(), errMeaning, was, is)
	}

	return nil
}

// mark converts the annotation.
func mark(u *unstructured.Unstructured, was meaning) {
	annotations := resource.Map(u.Object, "metadata", "annotations")

	switch text := resource.Annotation(u, v1alpha1.AnnotationInitialized); {
	case text == "true":
		annotations[v1alpha1.AnnotationInitialized] = resource.FormatInitialized(v1alpha1.Initialized{})
	case text == "" && !was.ready && resource.IsComposite(u) && len(resource.Composed(u)) > 0:
		if annotations == nil {
			annotations = map[string]any{}
			resource.Map(u.Object, "metadata")["annotations"] = annotations
		}

		annotations[v1alpha1.AnnotationInitialized] = resource.FormatInitialized(v1alpha1.Initialized{Building: true})
	}
}

// convertState makes the state of an XR out of what its two conditions said.
func convertState(u *unstructured.Unstructured) {
	conditions := resource.List(u.Object, "status", "conditions")
	find := func(typ string) int {
		return slices.IndexFunc(conditions, func(c any) bool {
			m, _ := c.(map[string]any)

			return resource.String(m, "type") == typ
		})
	}

	said, at := find(v1alpha1.ConditionKausality), find(formerState)
	if said < 0 {
		return
	}

	from, _ := conditions[said].(map[string]any)
	out := map[string]any{}

	for _, key := range []string{"status", "reason", "lastTransitionTime", "message"} {
		if v, ok := from[key]; ok {
			out[key] = v
		}
	}

	out["type"] = v1alpha1.ConditionState
	state := v1alpha1.State{V: v1alpha1.RecordVersion}

	if at >= 0 {
		list, _ := conditions[at].(map[string]any)
		if resource.String(list, "status") != "Unknown" {
			former := struct {
				Status string `json:"status"`
				Idle   int    `json:"idle"`
			}{}
			text := []byte(resource.String(list, "message"))
			_, _ = json.Unmarshal(text, &state), json.Unmarshal(text, &former)
			state.V = v1alpha1.RecordVersion
			state.Progress.Status, state.Progress.Idle = former.Status, former.Idle
		}
	}

	if m := message.FindStringSubmatch(resource.String(from, "message")); m != nil {
		state.Progress = progress(m, state.Progress)
		out["message"] = resource.FormatState(state)

		if out["status"] == "Unknown" { // The function does not run any more.
			out["status"] = "True"
		}
	}

	if at >= 0 {
		conditions[at] = out
	} else {
		status := resource.Map(u.Object, "status")
		status["conditions"] = append(slices.Clone(conditions), out)
	}
}

// progress is what the start of a message said.
func progress(m []string, out v1alpha1.Progress) v1alpha1.Progress {
	out.Generation, _ = strconv.ParseInt(m[1], 10, 64)

	switch m[2] {
	case "settled":
		out.Phase = v1alpha1.PhaseSettled
		out.Request, _ = strconv.ParseInt(m[3], 10, 64)
		out.Settled = v1alpha1.Settled{Generation: out.Generation, Request: out.Request}
	case "initializing":
		out.Phase = v1alpha1.PhaseInitializing
	default:
		out.Phase = v1alpha1.PhaseProgressing
	}

	return out
}

// now is what an object means.
func now(u *unstructured.Unstructured) meaning {
	p, reports := resource.ProgressOf(u)

	return meaning{reports: reports, ready: resource.SeenReady(u, lostAt(u)), settled: p.Settled}
}

// before is what an object meant while progress was a text.
func before(u *unstructured.Unstructured) meaning {
	c, ok := resource.ConditionOf(u, v1alpha1.ConditionKausality)
	out := meaning{reports: ok && !resource.IsClaim(u)}
	m := message.FindStringSubmatch(c.Message)

	if out.reports && m != nil && m[2] == "settled" {
		out.settled = progress(m, v1alpha1.Progress{}).Settled
	}

	switch {
	case resource.Annotation(u, v1alpha1.AnnotationInitialized) == "true":
		out.ready = true
	case ok && strings.HasPrefix(c.Message, "generation "):
		out.ready = len(m) < 3 || m[2] != "initializing"
	case ok && readyFor(u, c) < resource.InitializingLimit:
	default:
		out.ready = resource.WasReady(u)
	}

	return out
}

// readyFor is for how long an object had been ready when its condition became what it is.
func readyFor(u *unstructured.Unstructured, said resource.Condition) time.Duration {
	ready, _ := resource.ConditionOf(u, resource.ConditionReady)
	since, first := time.Parse(time.RFC3339, ready.LastTransitionTime)
	until, second := time.Parse(time.RFC3339, said.LastTransitionTime)

	if first != nil || second != nil {
		return math.MaxInt64
	}

	return until.Sub(since)
}

// lostAt is when Crossplane took away what the function said of an XR.
func lostAt(u *unstructured.Unstructured) time.Time {
	c, _ := resource.ConditionOf(u, v1alpha1.ConditionState)
	at, _ := time.Parse(time.RFC3339, c.LastTransitionTime)

	return at
}
