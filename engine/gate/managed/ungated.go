// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// unsupportedMessage is what a provider says that was built without support for
// management policies, or started with it switched off, of any set but *. It
// then does nothing at all with the resource.
//
// Source: github.com/crossplane/crossplane-runtime/v2 v2.4.0,
// pkg/reconciler/managed/reconciler.go, errFmtManagementPolicyNonDefault; v1.14
// says the same.
const unsupportedMessage = "is set to a non-default value but the feature is not enabled"

// ReasonPaused is the Synced condition's while a resource is not reconciled.
//
// Source: github.com/crossplane/crossplane/apis/v2 v2.4.0, core/v2/condition.go.
const ReasonPaused = "ReconcilePaused"

// Ungated records, each the only one of its meaning: the API server compares texts. The second is of mode Audit.
const (
	recordUngated = "v: 1\nstate: Ungated\n"
	recordAudited = recordUngated + "audit: true\n"
)

// UngatedRecords are the texts of kausality.io/gate of a resource whose gate was taken away.
func UngatedRecords() []string { return []string{recordUngated, recordAudited} }

// Ungated reports whether a managed resource's gate was taken away, because its
// provider does not support management policies, or its Composition runs the function in
// mode Audit.
func Ungated(u *unstructured.Unstructured) bool {
	rec, err := ParseRecord(u)

	return err == nil && rec != nil && rec.State == v1alpha1.GateUngated
}

// Unsupported reports whether a managed resource's provider says that it does not
// support management policies.
func Unsupported(u *unstructured.Unstructured) bool {
	c, ok := resource.ConditionOf(u, resource.ConditionSynced)

	return ok && c.Status == "False" && strings.Contains(c.Message, unsupportedMessage)
}

// Ungated reports whether the resource has no gate, or is to have none any more. A
// provider that supported management policies once, and now says that it does
// not, was started with a wrong flag: it leaves its resources alone until that
// is fixed, and to have it do what it likes with them is the last thing
// anybody wants.
func (m Resource) Ungated() bool {
	if m.Record == nil || Unproven(m.Record) {
		return Unsupported(m.Object)
	}

	return m.Record.State == v1alpha1.GateUngated
}

// Unproven reports whether a resource's provider is not known yet to support management
// policies: all that it ever saw may be the default set.
func Unproven(rec *v1alpha1.GateRecord) bool { return rec.Creating || rec.Unacknowledged }

// GatedAgain is the record of a resource of which the function only reported
// what is not allowed, and does so no longer: none, as that of a resource that
// it finds.
func GatedAgain(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) *v1alpha1.GateRecord {
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
		return allowance.External(a) && !Foreign(a.Mutations) && !allowance.OfDeletion(a)
	})
}
