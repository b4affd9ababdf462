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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	for field, text := range map[string]string{
		"spec.color": `no policy about Plan allows it.* of AllowancePolicy "lab-[a-z-]+"`,
		"spec.size":  `policy "lab-plans".* of AllowancePolicy "lab-plans"`,
	} {
		c := causes[field]
		said := regexp.MustCompile(text + `.* of Enforcement "lab-deny"`)

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
