// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestEveryWayToChangeAnObjectIsRefusedWhereNobodyAsked goes through the verbs
// of the API server, in a namespace that is enforced with Deny.
func TestEveryWayToChangeAnObjectIsRefusedWhereNobodyAsked(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-verbs", "deny")
	as := controller(t, worker)

	sized := func(task *unstructured.Unstructured) *unstructured.Unstructured {
		u := task.DeepCopy()
		_ = unstructured.SetNestedField(u.Object, "huge", "spec", "size") // It is a map.

		return u
	}

	cases := map[string]struct {
		reason string
		do     func(ctx context.Context, task *unstructured.Unstructured) error
		// passes where nothing that counts is done.
		passes bool
	}{
		"Create": {
			reason: "A plan that was ready makes no new task by itself.",
			do:     func(ctx context.Context, _ *unstructured.Unstructured) error { return as.Create(ctx, l.task("new")) },
		},
		"CreateWithGeneratedName": {
			reason: "Nor one whose name the API server makes.",
			do: func(ctx context.Context, _ *unstructured.Unstructured) error {
				u := l.task("")
				u.SetGenerateName("new-")

				return as.Create(ctx, u)
			},
		},
		"Update": {
			reason: "An update is a change like any other.",
			do:     func(ctx context.Context, task *unstructured.Unstructured) error { return as.Update(ctx, sized(task)) },
		},
		"Patch": {
			reason: "So is a JSON patch.",
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				return as.Patch(ctx, task, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/size", "value": "huge"}]`)))
			},
		},
		"Apply": {
			reason: "And server-side apply.",
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				u := l.object("Task", task.GetName(), map[string]any{"size": "huge"})

				return as.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("worker"), client.ForceOwnership)
			},
		},
		"Delete": {
			reason: "And deleting it.",
			do:     func(ctx context.Context, task *unstructured.Unstructured) error { return as.Delete(ctx, task) },
		},
		"DeleteCollection": {
			reason: "And deleting all of them at once.",
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				return as.DeleteAllOf(ctx, task, client.InNamespace(l.namespace))
			},
		},
		"DryRun": {
			reason: "A dry run is answered as if it were not one.",
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				return as.Update(ctx, sized(task), client.DryRunAll)
			},
		},
		"DropOwner": {
			reason: "A task does not free itself from its plan.",
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				return as.Patch(ctx, task, world.Merge(`{"metadata": {"ownerReferences": null}}`))
			},
		},
		"Status": {
			reason: "Status is the controller's own business.", passes: true,
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				return as.Status().Patch(ctx, task, world.Merge(`{"status": {"size": "huge"}}`))
			},
		},
		"Label": {
			reason: "Labels count where a policy names them.", passes: true,
			do: func(ctx context.Context, task *unstructured.Unstructured) error {
				return as.Patch(ctx, task, world.Merge(`{"metadata": {"labels": {"a": "b"}}}`))
			},
		},
		"Nothing": {
			reason: "Writing what is there already is no change.", passes: true,
			do: func(ctx context.Context, task *unstructured.Unstructured) error { return as.Update(ctx, task) },
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			task := l.made(t, "task-"+fmt.Sprintf("%x", name))

			err := tc.do(t.Context(), task.DeepCopy())
			if tc.passes && err != nil || !tc.passes && !apierrors.IsForbidden(err) {
				t.Fatalf("%s\n%v", tc.reason, err)
			}

			if !tc.passes && l.size(t, task) != "small" {
				t.Errorf("%s\nIt was changed", tc.reason)
			}
		})
	}
}

func TestADryRunHasNoEffect(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-dry", "none")

	as, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	plan := l.plan.DeepCopy()
	if err := as.Patch(t.Context(), plan, world.Merge(`{"spec": {"size": "large"}}`), client.DryRunAll); err != nil {
		t.Fatal(err)
	}

	if resource.Annotation(plan, v1alpha1.AnnotationAllowances) == "" {
		t.Error("a dry run does not show what would be stamped")
	}

	if err := as.Delete(t.Context(), plan, client.DryRunAll); err != nil {
		t.Fatal(err)
	}

	live := l.plan.DeepCopy()
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}

	for _, key := range []string{v1alpha1.AnnotationAllowances} {
		if v := resource.Annotation(live, key); v != "" {
			t.Errorf("%s is stored: %s", key, v)
		}
	}
}

func TestAnObjectWithAGeneratedNameIsStampedAndPasses(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-generated", "deny")

	// Made while its plan is built up.
	fresh := l.object("Plan", "fresh", map[string]any{"size": "small"})
	if err := l.Create(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}

	l.plan = fresh

	u := l.task("")
	u.SetGenerateName("task-")

	if err := controller(t, worker).Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}

	if e, err := traceOf(u, "create"); err != nil || e.Trace[0].Kind != "Plan" {
		t.Errorf("trace: %+v, %v", e, err)
	}
}

func TestScalingIsAChangeOfTheReplicasAndItsStampFollows(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-fleets", "deny")

	fleet := l.object("Fleet", "fleet", map[string]any{"ships": map[string]any{"count": int64(2)}, "name": "armada"})
	if err := l.Create(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}

	scale := func(as client.Client, to int32) error {
		return as.SubResource("scale").Update(t.Context(), fleet.DeepCopy(), client.WithSubResourceBody(
			&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: to}}))
	}

	// 1. By somebody who may not: a person, whose edit of a root Deny refuses.
	other, err := l.as(anna)
	if err != nil {
		t.Fatal(err)
	}

	for _, to := range []int32{9, 0} { // A Scale leaves out a zero.
		if err := scale(other, to); !apierrors.IsForbidden(err) || !mentions(err.Error(), "spec.ships.count", `policy "lab-fleets"`) {
			t.Errorf("anna, to %d: %v", to, err)
		}
	}

	// 2. By somebody who may.
	as, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	if err := scale(as, 3); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(t.Context(), "the stamp", func(ctx context.Context) error {
		live := fleet.DeepCopy()
		if err := l.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}

		if n := resource.Int(live.Object, "spec", "ships", "count"); n != 3 {
			return fmt.Errorf("%d ships: %w", n, world.ErrOther)
		}

		e, err := traceOf(live, "spec.ships.count")
		if err == nil && (e.Initiator != hansName || e.Generation != live.GetGeneration()) {
			err = fmt.Errorf("trace %+v at generation %d: %w", e, live.GetGeneration(), world.ErrOther)
		}

		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestAHeldScalingKeepsTheReplicas(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-held-fleets", "hold")

	fleet := l.object("Fleet", "fleet", map[string]any{"ships": map[string]any{"count": int64(2)}})
	if err := l.Create(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}

	as := controller(t, worker)

	if err := as.SubResource("scale").Update(t.Context(), fleet.DeepCopy(), client.WithSubResourceBody(
		&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 9}})); err != nil {
		t.Fatal(err)
	}

	if said := as.Take(); !mentions(said, "spec.ships.count") {
		t.Errorf("Warnings: %q", said)
	}

	live := fleet.DeepCopy()
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}

	if n := resource.Int(live.Object, "spec", "ships", "count"); n != 2 {
		t.Errorf("%d ships", n)
	}
}

func TestAHeldScalingOfWhatIsNotSetIsRefused(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-unset-fleets", "hold")

	fleet := l.object("Fleet", "fleet", map[string]any{"name": "armada"})
	if err := l.Create(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}

	err := controller(t, worker).SubResource("scale").Update(t.Context(), fleet.DeepCopy(), client.WithSubResourceBody(
		&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}))
	if !apierrors.IsForbidden(err) || !mentions(err.Error(), "spec.ships.count cannot be held, for it is not set") {
		t.Errorf("%v", err)
	}
}

func TestAnObjectThatTheAPIServerFillsInIsNoConflict(t *testing.T) {
	world.Long(t)
	t.Parallel()

	l := newLab(t, "lab-services", "deny")

	if err := l.apply(t.Context(), admin, labServices); err != nil {
		t.Fatal(err)
	}

	as, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "svc"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}

	if err := scenario.Eventually(t.Context(), "enforcement", func(ctx context.Context) error {
		if err := controller(t, worker).Create(ctx, svc.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return world.ErrOther
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	// 1. Its address is made after it was stamped.
	if err := as.Create(t.Context(), svc); err != nil {
		t.Fatal(err)
	}

	if e, err := traceOf(svc, "create"); err != nil || e.Initiator != hansName {
		t.Errorf("trace: %+v, %v", e, err)
	}

	// 2. So are its ports on the nodes.
	if err := as.Patch(t.Context(), svc, world.Merge(`{"spec": {"type": "NodePort"}}`)); err != nil {
		t.Fatal(err)
	}

	if svc.Spec.ClusterIP == "" || svc.Spec.Ports[0].NodePort == 0 {
		t.Errorf("%+v", svc.Spec)
	}
}

// labServices governs Services of one namespace, down to nothing in particular.
const labServices = `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: lab-services}
spec:
  match: {kind: Service, fields: [create, spec], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: lab-services}}}
  subjects: [{kind: Group, name: platform-team, mayInitiate: true}]
  allow: [{kind: Endpoints, mutations: [subsets]}]
---
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: services}
spec:
  match:
    resourceRules: [{apiGroups: [""], resources: [services]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: lab-services}}
  validationActions: [Deny]
`
