// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/decision"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/mask"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// Gate judges the gate of a managed resource: whether it is open, and for longer than
// what opened it allows, or was taken away; where it is closed, whether the external object
// has drifted.
func Gate(u *unstructured.Unstructured, now time.Time, opts gate.Options) []Finding {
	rec, err := allowance.ParseGate(u)

	switch {
	case err != nil || rec == nil || !resource.IsManaged(u): // See [Misread].
		return nil
	case rec.State == v1alpha1.GateUngated:
		return []Finding{ungated(u, rec)}
	case rec.State != v1alpha1.GateOpen:
		return drifted(u, opts.WithoutDrift)
	case overdue(now, rec, opts):
		c, _ := resource.ConditionOf(u, resource.ConditionSynced)
		said := mask.Value(nil, c.Message, u.Object) // Providers quote what they were told, such as a URL with a password.

		return []Finding{newFinding(GateOverdue, RefOf(u),
			fmt.Sprintf("its gate is open since %s: Synced=%s %s", rec.Since.UTC().Format(time.RFC3339), c.Status, said),
			"see why its provider does not apply the change: kubectl describe it").since(rec.Since.Time)}
	default:
		return []Finding{newFinding(GateOpen, RefOf(u),
			fmt.Sprintf("its gate is open for %s since %s", openFor(rec), rec.Since.UTC().Format(time.RFC3339)),
			"wait: it closes when the change has landed; kubectl kausality trace "+resource.Argument(u)+" says what it waits for").
			since(rec.Since.Time)}
	}
}

// drifted is of what somebody has changed of the external object since the gate closed.
func drifted(u *unstructured.Unstructured, without management.Kinds) []Finding {
	list := managed.DriftEntries(u, without)
	if len(list) == 0 {
		return nil
	}

	fields := make([]string, len(list))
	for i, e := range list {
		fields[i] = decision.DescribeDrift(e)
	}

	return []Finding{newFinding(Drifted, RefOf(u), "its external object was changed outside: "+strings.Join(fields, ", "),
		"revert it there, or approve that the spec is applied, or the object made again: kubectl kausality pending")}
}

// overdue reports whether a gate is open for longer than what opened it allows.
func overdue(now time.Time, rec *v1alpha1.GateRecord, opts gate.Options) bool {
	most := gate.MaxOpen(rec, opts)

	return most > 0 && now.Sub(rec.Since.Time) > most
}

// openFor names what a gate is open for.
func openFor(rec *v1alpha1.GateRecord) string {
	actions := strings.Join(rec.Actions, " and ")
	if rec.Creating {
		return actions + " at first"
	}

	if who := gate.Initiators(rec.Allowances); len(who) > 0 {
		return actions + ", requested by " + strings.Join(who, " and ") + ","
	}

	return actions
}

// ungated is of a managed resource whose gate was taken away.
func ungated(u *unstructured.Unstructured, rec *v1alpha1.GateRecord) Finding {
	if rec.Audit {
		return newFinding(Ungated, RefOf(u), "it is not gated, because its Composition runs the function in mode Audit",
			"give the function's input mode Hold, once its reports show what it would hold")
	}

	return newFinding(Ungated, RefOf(u), "it is not gated, because its provider does not support management policies",
		"take a provider, or a version of it, that supports management policies")
}
