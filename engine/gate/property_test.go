// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// someActions draws a set of actions.
func someActions(t *rapid.T, label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		management.ActionObserve, management.ActionLateInitialize, management.ActionCreate, management.ActionUpdate, management.ActionDelete, management.ActionAll,
	}), 0, 6, rapid.ID).Draw(t, label)
}

func someTime(t *rapid.T, label string) time.Time {
	return opening.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, label)) * time.Second)
}

func someOptions(t *rapid.T) gate.Options {
	return gate.Options{
		LateInitialize: rapid.Bool().Draw(t, "lateInitialize"),
		Settle:         time.Duration(rapid.IntRange(1, 300).Draw(t, "settle")) * time.Second,
		MaxOpen:        time.Duration(rapid.SampledFrom([]int{0, 3600, 7200}).Draw(t, "maxOpen")) * time.Second,
		CloseOverdue:   rapid.Bool().Draw(t, "closeOverdue"),
	}
}

func someAllowance(t *rapid.T) v1alpha1.Allowance {
	a := v1alpha1.Allowance{
		Generation: rapid.Int64Range(1, 12).Draw(t, "of generation"),
		Initiator:  rapid.SampledFrom([]string{"hans", "eve"}).Draw(t, "initiator"),
		Policy:     rapid.SampledFrom([]string{"p", "q"}).Draw(t, "policy"),
	}

	if rapid.IntRange(0, 9).Draw(t, "child") == 0 {
		a.Kind, a.Mutation = "Pod", "spec"

		return fixture.Sourced(a)
	}

	a.Relation = v1alpha1.RelationExternal
	a.Mutations = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		management.ActionCreate, management.ActionUpdate, management.ActionDelete, management.ActionAll, "apply",
	}), 1, 3, rapid.ID).Draw(t, "mutations")

	return fixture.Sourced(a)
}

func someRecord(t *rapid.T, list []v1alpha1.Allowance) *v1alpha1.GateRecord {
	rec := &v1alpha1.GateRecord{
		State:      rapid.SampledFrom([]v1alpha1.GateState{v1alpha1.GateOpen, v1alpha1.GateClosed}).Draw(t, "state"),
		Actions:    management.Acting(someActions(t, "actions")),
		Generation: rapid.Int64Range(1, 12).Draw(t, "gate's generation"),
		Consumed:   rapid.Int64Range(0, 12).Draw(t, "consumed"),
	}
	rec.Creating = rec.State == v1alpha1.GateOpen && rapid.Bool().Draw(t, "creating")
	rec.Unacknowledged = rec.State == v1alpha1.GateClosed && rapid.Bool().Draw(t, "unacknowledged")
	rec.Since.Time = someTime(t, "since")

	for _, a := range list {
		if allowance.External(a) && rapid.Bool().Draw(t, "recorded") {
			rec.Allowances = append(rec.Allowances, a)
		}
	}

	return rec
}

func someConditions(t *rapid.T) []any {
	var out []any

	for _, typ := range []string{"Synced", "Ready", "AsyncOperation", "LastAsyncOperation"} {
		if rapid.Bool().Draw(t, typ) {
			out = append(out, map[string]any{
				"type":               typ,
				"status":             rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "status"),
				"reason":             rapid.SampledFrom([]string{"Ongoing", "Finished"}).Draw(t, "reason"),
				"observedGeneration": rapid.Int64Range(0, 12).Draw(t, "observedGeneration"),
				"lastTransitionTime": rapid.SampledFrom([]string{someTime(t, "transition").Format(time.RFC3339), "", "yesterday"}).Draw(t, "lastTransitionTime"),
			})
		}
	}

	return out
}

// someResource draws a managed resource in any state, also such as no history
// leads to.
func someResource(t *rapid.T) *unstructured.Unstructured {
	list := rapid.SliceOfN(rapid.Custom(someAllowance), 0, 4).Draw(t, "allowances")
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind":   "Database",
		"spec":   map[string]any{"forProvider": map[string]any{"size": rapid.Int64Range(0, 1).Draw(t, "size")}},
		"status": map[string]any{"conditions": someConditions(t)},
	}}
	u.SetName("db")
	u.SetGeneration(12)

	annotations := map[string]string{v1alpha1.AnnotationTrace: "[{field: spec.forProvider.size, generation: 5, initiator: hans}]"}
	if len(list) > 0 {
		annotations[v1alpha1.AnnotationAllowances] = allowance.FormatList(list)
	}

	if rapid.Bool().Draw(t, "asks") {
		annotations[v1alpha1.AnnotationDesiredPolicies] = management.FormatPolicies(someActions(t, "asked"))
	}

	if rapid.IntRange(0, 4).Draw(t, "seen") > 0 {
		annotations[v1alpha1.AnnotationGate], _ = allowance.FormatGate(*someRecord(t, list))
	}

	u.SetAnnotations(annotations)

	if rapid.IntRange(0, 9).Draw(t, "defaulted") > 0 {
		setPolicies(u, someActions(t, "current")...)
	}

	if rapid.Bool().Draw(t, "shown") {
		_ = unstructured.SetNestedField(u.Object, int64(1), "status", "atProvider", "size")
	}

	if rapid.IntRange(0, 4).Draw(t, "deleting") == 0 {
		_ = unstructured.SetNestedField(u.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	}

	if rapid.IntRange(0, 9).Draw(t, "orphan") == 0 {
		_ = unstructured.SetNestedField(u.Object, "Orphan", "spec", "deletionPolicy")
	}

	return u
}

// upperBound is the widest set a resource's gate may have now.
func upperBound(t *rapid.T, u *unstructured.Unstructured, opts gate.Options) []string {
	desired, err := management.Desired(u)
	if err != nil {
		t.Fatal(err)
	}

	if len(desired) == 0 {
		return nil
	}

	rec, _ := allowance.ParseGate(u)
	list, _ := allowance.Parse(u)
	current := resource.Strings(u.Object, "spec", "managementPolicies")

	var asked []string

	switch {
	case rec == nil && current == nil:
		asked = []string{management.ActionCreate, management.ActionUpdate}
	case rec == nil:
		asked = slices.DeleteFunc(management.Acting(current), func(a string) bool { return a == management.ActionDelete })
	case rec.State == v1alpha1.GateOpen:
		asked = slices.Clone(rec.Actions)
	}

	for _, a := range list {
		if allowance.External(a) && (rec == nil || a.Generation > rec.Consumed) {
			asked = append(asked, management.Acting(a.Mutations)...)
		}
	}

	orphan := resource.String(u.Object, "spec", "deletionPolicy") == "Orphan"
	asked = slices.DeleteFunc(asked, func(a string) bool {
		return !slices.Contains(desired, a) || orphan && a == management.ActionDelete
	})

	return append(asked, management.Closed(desired, opts.LateInitialize)...)
}

// checkPlan checks what holds for every plan, and returns it.
func checkPlan(t *rapid.T, u *unstructured.Unstructured, opts gate.Options, now time.Time) gate.Plan {
	before := u.DeepCopy()

	plan, err := gate.PlanFor(u, opts, now)
	if err != nil {
		t.Fatal(err)
	}

	again, _ := gate.PlanFor(before, opts, now)
	if diff := cmp.Diff(plan, again) + cmp.Diff(before, u); diff != "" {
		t.Fatalf("planned twice:\n%s", diff)
	}

	trimmed := trim(u)

	without, _ := gate.PlanFor(trimmed, opts, now)
	if diff := cmp.Diff(plan, without); diff != "" {
		t.Fatalf("planned for the whole and for the trimmed resource:\n%s", diff)
	}

	if gate.Pending(u) != gate.Pending(trimmed) || gate.MayDelete(u) != gate.MayDelete(trimmed) || managed.Orphans(u) != managed.Orphans(trimmed) {
		t.Fatalf("the trimmed resource is another: %v", trimmed)
	}

	if plan.Move == gate.Stay {
		return plan
	}

	for _, a := range plan.Policies {
		if !slices.Contains(upperBound(t, u, opts), a) {
			t.Fatalf("%v is wider than %v: %+v", plan.Policies, upperBound(t, u, opts), plan)
		}
	}

	if desired, _ := management.Desired(u); !management.Supported(plan.Policies) && (len(desired) > 0 || len(plan.Policies) > 0) {
		t.Fatalf("not supported: %+v", plan)
	}

	rec, _ := allowance.ParseGate(u)
	if rec != nil && (plan.Record.Consumed < rec.Consumed) {
		t.Fatalf("consumed goes back: %+v", plan)
	}

	after := u.DeepCopy()
	apply(after, plan)

	next, err := gate.PlanFor(after, opts, now)
	if err != nil || next.Move != gate.Stay {
		t.Fatalf("planned again at the same instant: %+v, %v, after %+v", next, err, plan)
	}

	return plan
}

func TestEveryPlanIsSupportedBoundedAndFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkPlan(t, someResource(t), someOptions(t), someTime(t, "now"))
	})
}
