// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Ungate gives a resource what its Composition asked for, and takes its gate
// away: its provider does not support management policies, or its Composition
// runs the function in mode Audit.
const Ungate Move = "Ungate"

// unsupportedMessage is what a provider says that was built without support for
// management policies, or started with it switched off, of any set but *. It
// then does nothing at all with the resource.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0,
// pkg/reconciler/managed/reconciler.go, errFmtManagementPolicyNonDefault; v1.14
// says the same.
const unsupportedMessage = "is set to a non-default value but the feature is not enabled"

// reasonPaused is the Synced condition's while a resource is not reconciled.
//
// Source: github.com/crossplane/crossplane/apis/v2 v2.4.0, core/v2/condition.go.
const reasonPaused = "ReconcilePaused"

// Ungated records, each the only one of its meaning: the API server compares texts. The second is of mode Audit.
const (
	recordUngated = "v: 1\nstate: Ungated\n"
	recordAudited = recordUngated + "audit: true\n"
)

// UngatedRecords are the texts of kausality.io/gate of a resource whose gate was taken away.
func UngatedRecords() []string { return []string{recordUngated, recordAudited} }

// Ungated reports whether a managed resource's gate was taken away, because its
// provider does not support management policies.
func Ungated(u *unstructured.Unstructured) bool {
	rec, err := parseRecord(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateUngated
}

// Unsupported reports whether a managed resource's provider says that it does not
// support management policies.
func Unsupported(u *unstructured.Unstructured) bool {
	c, ok := resource.ConditionOf(u, resource.ConditionSynced)

	return ok && c.Status == "False" && strings.Contains(c.Message, unsupportedMessage)
}

// ungated reports whether the resource has no gate, or is to have none any more. A
// provider that supported management policies once, and now says that it does
// not, was started with a wrong flag: it leaves its resources alone until that
// is fixed, and to have it do what it likes with them is the last thing
// anybody wants.
func (m managed) ungated() bool {
	if m.record == nil || unproven(m.record) {
		return Unsupported(m.u)
	}

	return m.record.State == v1alpha1.GateUngated
}

// unproven reports whether a resource's provider is not known yet to support management
// policies: all that it ever saw may be the default set.
func unproven(rec *v1alpha1.GateRecord) bool { return rec.Creating || rec.Unacknowledged }

// gatedAgain is the record of a resource of which the function only reported
// what is not allowed, and does so no longer: none, as that of a resource that
// it finds.
func gatedAgain(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) *v1alpha1.GateRecord {
	if rec != nil && rec.Audit && !management.Audited(u) {
		return nil
	}

	return rec
}

// Free reports whether a managed resource is composed in mode Audit, and has no gate.
func Free(u *unstructured.Unstructured) bool {
	return resource.IsManaged(u) && management.Audited(u) && !management.Governed(u)
}

// Unopened returns those of a list of allowances that do not wait for a gate to
// open: where there is none, nothing takes away the others.
func Unopened(list []v1alpha1.Allowance) []v1alpha1.Allowance {
	return slices.DeleteFunc(slices.Clone(list), func(a v1alpha1.Allowance) bool {
		return allowance.External(a) && !foreign(a.Mutations) && !allowance.OfDeletion(a)
	})
}

// leaveUngated plans for a resource without a gate.
func (m managed) leaveUngated() Plan {
	why := "not gated: its provider does not support management policies, and applies every change"
	unsupported := m.record != nil && m.record.State == v1alpha1.GateUngated && !m.record.Audit
	rec := v1alpha1.GateRecord{V: v1alpha1.RecordVersion, State: v1alpha1.GateUngated, Audit: management.Audited(m.u) && !unsupported}

	if rec.Audit {
		why = "not gated: its Composition runs the function in mode Audit, and every change is applied"
	}

	desired, _ := management.ParseDesired(m.u) // It parsed before.

	asked := desired.Policies
	if asked == nil {
		asked = []string{management.ActionAll}
	}

	// To such a provider not even the list of all actions is the same as *.
	given := slices.Equal(asked, resource.Strings(m.u.Object, "spec", "managementPolicies"))
	left := Unopened(m.allowances)

	if given && m.record != nil && m.record.State == v1alpha1.GateUngated && m.record.Audit == rec.Audit && len(left) == len(m.allowances) {
		return m.stay(why)
	}

	// The record has one text for each meaning: the API server compares texts.
	return Plan{Move: Ungate, Policies: asked, Record: rec, Allowances: left, Why: why}
}

// acknowledged reports whether the provider surely knows of the closed set: it has said
// anything of the generation that the closing made but that it does not support
// the like. If not, it says when time alone decides, of a provider that names
// no generations.
func (m managed) acknowledged(limits limits, now time.Time) (acknowledged bool, again time.Duration) {
	c, ok := resource.ConditionOf(m.u, resource.ConditionSynced)

	switch {
	case ok && c.Reason == reasonPaused:
		return false, 0 // It has not observed the set.
	case !ok || c.ObservedGeneration != 0:
		return ok && c.ObservedGeneration >= m.record.Generation, 0
	default:
		again = max(0, limits.settle-now.Sub(m.record.Since.Time))

		return again == 0, again
	}
}
