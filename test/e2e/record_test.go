// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// TestARefusalIsOnRecordWithWhatItWasDecidedBy through the API server: clients get
// a cause for each field, the audit log generations, and one event names all.
func TestARefusalIsOnRecordWithWhatItWasDecidedBy(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-record", "deny")
	task := l.made(t, "task")

	err := controller(t, worker).Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "huge", "color": "blue"}}`))

	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatalf("the refusal has no details: %v", err)
	}

	causes := map[string]metav1.StatusCause{}
	for _, c := range status.Status().Details.Causes {
		causes[c.Field] = c
	}

	// No policy allows the colour: any of those about tasks may be named, and
	// tests beside this one make some.
	for field, policy := range map[string]string{"spec.color": `lab-[a-z-]+`, "spec.size": `lab-plans`} {
		c := causes[field]
		said := regexp.MustCompile(`policy "` + policy + `".* of AllowancePolicy "` + policy + `".* of Enforcement "lab-deny"`)

		if c.Type != metav1.CauseTypeForbidden || !said.MatchString(c.Message) {
			t.Errorf("%s: %+v", field, c)
		}
	}

	audited(t, l, task, "Denied", map[string]string{
		"fields": "spec.color; spec.size", "policies": "lab-plans@", "enforcements": "lab-deny@",
	})

	if err := scenario.Eventually(t.Context(), "one event about both fields", func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := l.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
			return err
		}

		var notes []string

		for _, e := range list.Items {
			if e.Reason == "KausalityDenied" && e.Regarding.Name == task.GetName() {
				notes = append(notes, e.Note)
			}
		}

		if len(notes) != 1 || !mentions(notes[0], "spec.color", "spec.size") {
			return fmt.Errorf("events say %s: %w", strings.Join(notes, "\n"), world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestWhatIsAllowedIsOnRecordWithItsTicket in the API server's audit log.
func TestWhatIsAllowedIsOnRecordWithItsTicket(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-ticket", "deny")
	task := l.made(t, "task")

	l.ask(t, "large")

	if err := controller(t, worker).Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "large"}}`)); err != nil {
		t.Fatal(err)
	}

	audited(t, l, task, "Allowed", map[string]string{
		"fields": "spec.size", "policies": "lab-plans@", "enforcements": "lab-deny@",
		"attestations": `"metadata.annotations[ticket]":"LAB-23"`,
	})
}

// TestWhatDoesNotFitOrIsNotReadyIsReported before anybody is surprised by it: in the
// status of an Enforcement, and in metrics.
func TestWhatDoesNotFitOrIsNotReadyIsReported(t *testing.T) {
	t.Parallel()

	c := newCluster(t, "Note", "note")
	if err := c.applyFile(t.Context(), "notes.yaml"); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		for kind, name := range map[string]string{"Enforcement": "notes", "AllowancePolicy": "notes-nowhere"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
			u.SetName(name)

			_ = c.Delete(context.WithoutCancel(t.Context()), u)
		}
	})

	// It never is in force, so nothing waits for it.
	nowhere := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kausality.io/v1alpha1", "kind": "AllowancePolicy", "metadata": map[string]any{"name": "notes-nowhere"},
		"spec": map[string]any{
			"match":    map[string]any{"apiGroup": "nowhere.example.org", "kind": "Note", "fields": []any{"spec.text"}},
			"subjects": []any{map[string]any{"kind": "Group", "name": "platform-team", "mayInitiate": true}},
			"allow":    []any{map[string]any{"apiGroup": "notes.example.org", "kind": "Note", "mutations": []any{"spec.text"}}},
		},
	}}
	if err := c.Create(t.Context(), nowhere); err != nil {
		t.Fatal(err)
	}

	const warning = "notes.example.org/v1, kind Note: 1:12: undefined field 'txt'"

	if err := scenario.Eventually(t.Context(), "a warning of the condition", func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("Enforcement"))

		if err := c.Get(ctx, client.ObjectKey{Name: "notes"}, u); err != nil {
			return err
		}

		list, _, _ := unstructured.NestedSlice(u.Object, "status", "typeChecking")
		if ready, _ := resource.ConditionOf(u, "Ready"); len(list) != 1 || !mentions(fmt.Sprint(list), warning) ||
			!mentions(ready.Message, "the Enforcement is in force, but spec.matchConditions[0].expression: "+warning) {
			return fmt.Errorf("typeChecking %v, Ready %q: %w", list, ready.Message, world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Error(err)
	}

	want := regexp.MustCompile(`(?m)^kausality_policies_not_ready\{kind="AllowancePolicy",reason="KindUnknown"\} [1-9]`)

	if err := scenario.Eventually(t.Context(), "a metric of the policy", func(ctx context.Context) error {
		text, err := scraped(ctx)
		if err == nil && !want.MatchString(text) {
			err = world.ErrOther
		}

		return err
	}); err != nil {
		t.Error(err)
	}
}
