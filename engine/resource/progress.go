// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"errors"
	"fmt"
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

// ProgressOf returns how far a composition function has come with an XR, and up to where that has settled: by what the
// function said last, and by the annotation, which lasts. False where no function reports on it, or none any more. Where
// Crossplane has taken away what the function said, for a step of the pipeline failed or a composed resource could not be
// applied, the XR is built up no more, unless the annotation says that it is.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0
// internal/controller/apiextensions/composite/reconciler.go, Reconcile.
func ProgressOf(xr *unstructured.Unstructured) (v1alpha1.Progress, bool) {
	condition, reports := ConditionOf(xr, v1alpha1.ConditionState)
	rec, known := InitializedOf(xr)
	generation := Generation(xr)

	p, says := progressIn(condition)
	if generation > 0 && p.Generation > generation { // Of another object of that name, from whose backup it was made.
		p, says = v1alpha1.Progress{}, false
	}

	if !says {
		p.Phase = v1alpha1.PhaseProgressing
		if known && rec.Building {
			p.Phase = v1alpha1.PhaseInitializing
		}
	}

	p.Settled = later(p.Settled, rec.Settled)

	if p.Phase == v1alpha1.PhaseInitializing && (known && !rec.Building || p.Settled.Generation > 0) {
		p.Phase = v1alpha1.PhaseProgressing // It was said before that, and Crossplane has written it back.
	}

	if c, _ := ConditionOf(xr, v1alpha1.ConditionKausality); c.Reason == v1alpha1.ReasonNotRun {
		return p, false // It is from when the function ran.
	}

	return p, reports || rec.Settled.Generation > 0
}

// ofAnother reports whether a record is of another object of that name, from whose backup one was made.
func ofAnother(u *unstructured.Unstructured, rec v1alpha1.Initialized) bool {
	generation := Generation(u)

	return generation > 0 && rec.Settled.Generation > generation
}

// later returns the later of two marks.
func later(a, b v1alpha1.Settled) v1alpha1.Settled {
	if a.Generation > b.Generation || a.Generation == b.Generation && a.Request > b.Request {
		return a
	}

	return b
}

// InitializedOf reads [v1alpha1.AnnotationInitialized]. False where there is none, or it is of another object. One that is not
// understood says that the object is built up no more.
func InitializedOf(u *unstructured.Unstructured) (v1alpha1.Initialized, bool) {
	text := Annotation(u, v1alpha1.AnnotationInitialized)
	if text == "" {
		return v1alpha1.Initialized{}, false
	}

	out, err := parseInitialized(text)

	switch {
	case err != nil:
		return v1alpha1.Initialized{V: v1alpha1.RecordVersion}, true
	case ofAnother(u, out):
		return v1alpha1.Initialized{}, false
	default:
		return out, true
	}
}

// CheckInitialized reports an error where [v1alpha1.AnnotationInitialized] is not understood. The error names it.
func CheckInitialized(u *unstructured.Unstructured) error {
	text := Annotation(u, v1alpha1.AnnotationInitialized)
	if text == "" {
		return nil
	}

	_, err := parseInitialized(text)

	return err
}

func parseInitialized(text string) (v1alpha1.Initialized, error) {
	if text == bare { // Of all but XRs; read for each decision.
		return v1alpha1.Initialized{V: v1alpha1.RecordVersion}, nil
	}

	var out v1alpha1.Initialized

	err := json.Unmarshal([]byte(text), &out)
	if err == nil && out.V != v1alpha1.RecordVersion {
		err = errVersion
	}

	if err != nil {
		return v1alpha1.Initialized{}, fmt.Errorf("cannot read the annotation %s: %w", v1alpha1.AnnotationInitialized, err)
	}

	return out, nil
}

var errVersion = errors.New("it is of another version")

// bare is a record that says nothing more.
const bare = `{"v":1}`

// FormatInitialized writes [v1alpha1.AnnotationInitialized].
func FormatInitialized(rec v1alpha1.Initialized) string {
	rec.V = v1alpha1.RecordVersion

	raw, err := json.Marshal(rec)
	if err != nil {
		return ""
	}

	return string(raw)
}

// SeenReady reports whether the object is or was ready, at a time: recorded to be initialized, or with a Ready or Available
// condition that is True. Kinds without such a condition are taken as ready once their controller has observed them. Where a
// function composes, it says until when an XR is built up: that may be ready for a moment, between one round and the next,
// and not ready for a while later. Where nobody says so any more, it is until it has been ready for [InitializingLimit]. An XR
// that Crossplane has composed before, and of which no record says that it is built up, has been.
func SeenReady(u *unstructured.Unstructured, now time.Time) bool {
	if p, reports := ProgressOf(u); reports {
		return p.Phase != v1alpha1.PhaseInitializing || p.Generation == 0 && readyFor(u, now) >= InitializingLimit
	}

	rec, known := InitializedOf(u)
	_, composed := ConditionOf(u, ConditionReady)

	return known && !rec.Building || WasReady(u) || !rec.Building && composed && IsComposite(u) && len(Composed(u)) > 0
}

// WasReady reports whether the object's own conditions show that it is ready. Of kinds without such a condition their
// controller has observed it.
func WasReady(u *unstructured.Unstructured) bool {
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

// readyFor returns for how long an object has been ready; 0 where it is not, or does not say since when.
func readyFor(u *unstructured.Unstructured, now time.Time) time.Duration {
	c, _ := ConditionOf(u, ConditionReady)

	since, err := time.Parse(time.RFC3339, c.LastTransitionTime)
	if err != nil || !c.True() {
		return 0
	}

	return now.Sub(since)
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

// Ready reports whether the object's Ready condition is True.
func Ready(u *unstructured.Unstructured) bool {
	c, ok := ConditionOf(u, ConditionReady)

	return ok && c.True()
}
