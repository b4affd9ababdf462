// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package random_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// brief shows versions of a server, a line each.
func brief(versions []*unstructured.Unstructured) string {
	var out strings.Builder

	for _, u := range versions {
		fmt.Fprintf(&out, "  %s generation %d %v at %v under %v", u.GetResourceVersion(), u.GetGeneration(),
			resource.Map(u.Object, "spec", "forProvider"), resource.Map(u.Object, "status", "atProvider"),
			resource.Strings(u.Object, "spec", "managementPolicies"))

		for _, typ := range []string{resource.ConditionSynced, resource.ConditionReady, resource.ConditionAsyncOperation, resource.ConditionLastAsyncOperation} {
			if c, ok := resource.ConditionOf(u, typ); ok {
				fmt.Fprintf(&out, " %s=%s/%d/%s", typ, c.Status, c.ObservedGeneration, c.LastTransitionTime[11:])
			}
		}

		if list, err := allowance.Parse(u); err == nil {
			for _, a := range list {
				fmt.Fprintf(&out, " +%s%v@%d", a.Policy, a.Mutations, a.Generation)
			}
		}

		if rec, err := allowance.ParseGate(u); err == nil && rec != nil {
			out.WriteString(briefRecord(*rec))
		}

		out.WriteByte('\n')
	}

	return out.String()
}

func briefRecord(rec v1alpha1.GateRecord) string {
	var out strings.Builder

	fmt.Fprintf(&out, " %s%v@%d since %s consumed %d", rec.State, rec.Actions, rec.Generation, rec.Since.UTC().Format("15:04:05"), rec.Consumed)

	for _, a := range rec.Allowances {
		fmt.Fprintf(&out, " for %v@%d", a.Mutations, a.Generation)
	}

	return out.String()
}
