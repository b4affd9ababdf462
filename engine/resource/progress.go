// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
)

// Condition types that say how far a controller has come.
const (
	ConditionReady              = "Ready"
	ConditionSynced             = "Synced"
	ConditionAvailable          = "Available"
	ConditionAsyncOperation     = "AsyncOperation"
	ConditionLastAsyncOperation = "LastAsyncOperation"
)

// Condition is one entry of status.conditions.
type Condition struct {
	// Type of the condition.
	Type string
	// Status is True, False or Unknown.
	Status string
	// Reason in CamelCase.
	Reason string
	// Message for a person.
	Message string
	// ObservedGeneration is 0 where the controller sets none.
	ObservedGeneration int64
	// LastTransitionTime as written, RFC 3339.
	LastTransitionTime string
}

// True reports whether the condition's status is True.
func (c Condition) True() bool { return c.Status == "True" }

// ConditionOf returns a condition by type, and whether it is there.
func ConditionOf(u *unstructured.Unstructured, typ string) (Condition, bool) {
	for _, e := range List(u.Object, "status", "conditions") {
		m, ok := e.(map[string]any)
		if !ok || String(m, "type") != typ {
			continue
		}

		return Condition{
			Type:               typ,
			Status:             String(m, "status"),
			Reason:             String(m, "reason"),
			Message:            String(m, "message"),
			ObservedGeneration: Int(m, "observedGeneration"),
			LastTransitionTime: String(m, "lastTransitionTime"),
		}, true
	}

	return Condition{}, false
}

// ObservedGeneration returns the effective observed generation: the greatest
// of status.observedGeneration and that of a Synced or Ready condition whose
// status is True. A condition with status False carries one too, of an attempt
// that failed. 0 where the kind reports neither.
func ObservedGeneration(u *unstructured.Unstructured) int64 {
	seen := Int(u.Object, "status", "observedGeneration")

	for _, typ := range []string{ConditionSynced, ConditionReady} {
		if c, ok := ConditionOf(u, typ); ok && c.True() {
			seen = max(seen, c.ObservedGeneration)
		}
	}

	return seen
}

// InitializingLimit is for how long an XR may be ready before it counts as settled
// though the function does not say so.
const InitializingLimit = 10 * time.Minute

// SeenReady reports whether the object is or was ready: marked initialized, or
// with a Ready or Available condition that is True. Kinds without such a
// condition are taken as ready once their controller has observed them. Where a
// function composes, it says until when an XR is built up: that may be ready for
// a moment, between one round and the next, and not ready for a while later.
func SeenReady(u *unstructured.Unstructured) bool {
	if Annotation(u, v1alpha1.AnnotationInitialized) == "true" {
		return true
	}

	said, ok := ConditionOf(u, v1alpha1.ConditionKausality)

	switch {
	case ok && ourMessage.MatchString(said.Message):
		return !initializingMessage.MatchString(said.Message)
	case ok && readyUntil(u, said) < InitializingLimit:
		return false
	}

	has := false

	for _, typ := range []string{ConditionReady, ConditionAvailable} {
		c, ok := ConditionOf(u, typ)
		if ok && c.True() {
			return true
		}

		has = has || ok
	}

	if has || IsClaim(u) || IsComposite(u) || IsManaged(u) {
		return false
	}

	return ObservedGeneration(u) > 0
}

// readyUntil returns for how long an object had been ready when its Kausality
// condition became what it is, or more than [InitializingLimit] where the conditions
// do not show it. Where a step of the pipeline fails, or a composed resource cannot be
// applied, Crossplane takes away what the function said, and nothing else shows
// whether the XR had settled, or was ready between one round and the next.
//
// Source: github.com/crossplane/crossplane/v2
// internal/controller/apiextensions/composite/reconciler.go, Reconcile.
func readyUntil(u *unstructured.Unstructured, said Condition) time.Duration {
	ready, _ := ConditionOf(u, ConditionReady)
	since, err := time.Parse(time.RFC3339, ready.LastTransitionTime)

	until, errUntil := time.Parse(time.RFC3339, said.LastTransitionTime)
	if err != nil || errUntil != nil {
		return math.MaxInt64
	}

	return until.Sub(since)
}

// Converged reports whether the object's controller has finished: what kstatus
// calls Current, and for Crossplane's kinds Synced too. Observed is not
// finished: the Deployment controller reports a generation as observed at the
// first of a rollout's many steps.
func Converged(u *unstructured.Unstructured) bool {
	if c, ok := ConditionOf(u, ConditionSynced); ok && !c.True() {
		return false
	}

	res, err := status.Compute(u)

	return err == nil && res.Status == status.CurrentStatus
}

// initializingMessage is how the function's condition starts until an XR has
// settled for the first time.
var initializingMessage = regexp.MustCompile(`^generation \d+: initializing\b`)

// ourMessage is how the function's condition starts.
var ourMessage = regexp.MustCompile(`^generation \d+: `)

// Ready reports whether the object's Ready condition is True.
func Ready(u *unstructured.Unstructured) bool {
	c, ok := ConditionOf(u, ConditionReady)

	return ok && c.True()
}

// ProgressMessage starts the message of the Kausality condition of an XR some
// of whose changes are under way, or that is being built up.
func ProgressMessage(u *unstructured.Unstructured) string {
	word := "in progress"
	if !SeenReady(u) {
		word = "initializing"
	}

	return "generation " + strconv.FormatInt(Generation(u), 10) + ": " + word
}

// settledMessage is how the function's condition starts once an XR's change
// has reached everything it composes.
var settledMessage = regexp.MustCompile(`^generation (\d+): settled\b(?:, request (\d+)\b)?`)

// SettledMessage starts the message of the Kausality condition of an XR whose
// changes up to a generation, and up to a request within it, have reached
// everything it composes.
func SettledMessage(generation, request int64) string {
	text := "generation " + strconv.FormatInt(generation, 10) + ": settled"
	if request > 0 {
		text += ", request " + strconv.FormatInt(request, 10)
	}

	return text
}

// SettledGeneration returns the generation up to which the composition
// function reports an XR settled, and whether a function reports on it at all.
// A Claim shows its XR's condition, which says nothing of the Claim's own
// generation.
func SettledGeneration(u *unstructured.Unstructured) (int64, bool) {
	c, ok := ConditionOf(u, v1alpha1.ConditionKausality)
	if !ok || IsClaim(u) {
		return 0, false
	}

	m := settledMessage.FindStringSubmatch(c.Message)
	if m == nil {
		return 0, true
	}

	g, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, true
	}

	return g, true
}

// SettledRequest returns the request within [SettledGeneration] up to which an XR
// has settled; 0 where there was none.
func SettledRequest(u *unstructured.Unstructured) int64 {
	c, _ := ConditionOf(u, v1alpha1.ConditionKausality)

	m := settledMessage.FindStringSubmatch(c.Message)
	if m == nil || IsClaim(u) {
		return 0
	}

	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return 0
	}

	return n
}
