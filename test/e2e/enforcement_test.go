// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

func TestAnUnaskedChangeMeetsWhatItsEnforcementSays(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		// refused and stored say what becomes of the change, warned whether the
		// user is warned.
		refused bool
		stored  string
		warned  bool
		audited string
		events  bool
	}{
		"deny":  {reason: "Deny refuses the request.", refused: true, stored: "small", audited: "Denied", events: true},
		"hold":  {reason: "Hold keeps the old value, and says so.", stored: "small", warned: true, audited: "Held", events: true},
		"warn":  {reason: "Warn lets it pass, and says so.", stored: "huge", warned: true, audited: "Warned"},
		"audit": {reason: "Audit lets it pass, and tells nobody but the log.", stored: "huge", audited: "Audited"},
		"none":  {reason: "Without an Enforcement nothing is refused, and it is said.", stored: "huge", warned: true, audited: "Warned"},
	}

	for label, tc := range cases {
		t.Run(label, func(t *testing.T) {
			t.Parallel()

			l := newLab(t, "lab-"+label, label)
			task := l.made(t, "task")
			as := controller(t, worker)

			err := as.Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "huge", "color": null}}`))
			if tc.refused != apierrors.IsForbidden(err) || !tc.refused && err != nil {
				t.Fatalf("%s\nUnasked: %v", tc.reason, err)
			}

			why := []string{"spec.size", `Plan "plan" has no allowance for it`, `policy "lab-plans" gives one when Group platform-team changes spec.size`}
			if tc.refused && !mentions(err.Error(), why...) {
				t.Errorf("%s\n%q does not say %q", tc.reason, err, why)
			}

			if said := as.Take(); tc.warned != mentions(said, why...) {
				t.Errorf("%s\nWarnings: %q", tc.reason, said)
			}

			if got := l.size(t, task); got != tc.stored {
				t.Errorf("%s\nThe size is %q, want %q", tc.reason, got, tc.stored)
			}

			audited(t, l, task, tc.audited, map[string]string{"missing": `Plan "plan" has no allowance for it`})

			if tc.events {
				reason := "Kausality" + tc.audited
				if err := scenario.Eventually(t.Context(), "an event", l.told(task, reason)); err != nil {
					t.Errorf("%s\n%v", tc.reason, err)
				}
			}
		})
	}
}

func TestAnAskedForChangePassesWhateverItsEnforcementSays(t *testing.T) {
	t.Parallel()

	for _, label := range []string{"deny", "hold", "warn", "audit", "none"} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()

			l := newLab(t, "lab-asked-"+label, label)
			task := l.made(t, "task")
			as := controller(t, worker)

			l.ask(t, "large")

			if err := as.Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "large"}}`)); err != nil {
				t.Fatal(err)
			}

			if said := as.Take(); said != "" {
				t.Errorf("Warnings: %q", said)
			}

			audited(t, l, task, "Allowed", map[string]string{
				"rule": "Allowance", "policy": "lab-plans", "initiator": hansName, "trace": "Plan/plan@2 spec.size",
			})

			live := task.DeepCopy()
			if err := l.Get(t.Context(), client.ObjectKeyFromObject(task), live); err != nil {
				t.Fatal(err)
			}

			e, err := traceOf(live, "spec.size")
			if err != nil {
				t.Fatal(err)
			}

			if e.Initiator != hansName || len(e.Trace) != 2 || e.Trace[0].Attestations["metadata.annotations[ticket]"] != "LAB-23" {
				t.Errorf("trace: %+v", e)
			}
		})
	}
}

func TestAKeyPrefixAllowsEachKeyWithItAndTheOwnerIsNamed(t *testing.T) {
	t.Parallel()

	const mine, other = "team.lab.example.org/cost", "other.lab.example.org/cost"

	l := newLab(t, "lab-settings", "deny")
	task := l.made(t, "task")
	as := controller(t, worker)

	set := func(key string) error {
		return as.Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"settings": {"`+key+`": "a"}}}`))
	}

	// 1. Before anybody asked for it, whoever is refused reads whom to ask.
	err := set(mine)
	if !apierrors.IsForbidden(err) || !mentions(err.Error(), `policy "lab-settings" gives one`, `ask the lab (#lab) about policy "lab-settings"`) {
		t.Errorf("not asked for: %v", err)
	}

	// 2. A key of the plan with the prefix allows those of its tasks, and no other. One that is excluded
	// allows none.
	hansen, err := l.as(hans)
	if err != nil {
		t.Fatal(err)
	}

	plan := l.plan.DeepCopy()
	if err := hansen.Patch(t.Context(), plan, world.Merge(`{"spec": {"settings": {"team.lab.example.org/locked": "b"}}}`), client.DryRunAll); err != nil {
		t.Fatal(err)
	}

	if got := resource.Annotation(plan, v1alpha1.AnnotationAllowances); got != "" {
		t.Errorf("what is excluded allows %s", got)
	}

	if err := hansen.Patch(t.Context(), l.plan.DeepCopy(), world.Merge(`{"spec": {"settings": {"team.lab.example.org/owner": "b"}}}`)); err != nil {
		t.Fatal(err)
	}

	if err := set(other); !apierrors.IsForbidden(err) {
		t.Errorf("another key: %v", err)
	}

	if err := set(mine); err != nil {
		t.Error(err)
	}

	audited(t, l, task, "Allowed", map[string]string{"rule": "Allowance", "policy": "lab-settings", "initiator": hansName})
}

func TestAnExceptionLetsItsSubjectsUntilItEnds(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-exception", "deny")
	task := l.made(t, "task")

	if err := controller(t, migration).Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "huge"}}`)); err != nil {
		t.Errorf("excepted: %v", err)
	}

	audited(t, l, task, "Allowed", map[string]string{"rule": "Exception", "policy": "lab-deny/migration"})

	if err := controller(t, migration).Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"color": "blue"}}`)); !apierrors.IsForbidden(err) {
		t.Errorf("another field: %v", err)
	}

	if err := controller(t, late).Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "tiny"}}`)); !apierrors.IsForbidden(err) {
		t.Errorf("after its end: %v", err)
	}
}

func TestWhatIsHeldIsRecordedAndThePartThatIsAllowedPasses(t *testing.T) {
	t.Parallel()

	l := newLab(t, "lab-held", "hold")
	task := l.made(t, "task")

	l.ask(t, "large")

	if err := controller(t, worker).Patch(t.Context(), task.DeepCopy(), world.Merge(`{"spec": {"size": "large", "color": "blue"}}`)); err != nil {
		t.Fatal(err)
	}

	live := task.DeepCopy()
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(task), live); err != nil {
		t.Fatal(err)
	}

	if size, color := resource.String(live.Object, "spec", "size"), resource.String(live.Object, "spec", "color"); size != "large" || color != "red" {
		t.Errorf("size %q, color %q", size, color)
	}

	held, err := allowance.ParseHeld(live)
	if err != nil || len(held) != 1 || held[0].Field != "spec.color" || held[0].To != "blue" {
		t.Errorf("held: %+v, %v", held, err)
	}
}

// audited checks that the API server's audit log has the decision about the
// newest change of an object.
func audited(t *testing.T, l lab, u *unstructured.Unstructured, decision string, more map[string]string) {
	t.Helper()

	err := scenario.Eventually(t.Context(), "an entry of the audit log", all(func(context.Context) error {
		got, err := auditOf(l.namespace, u.GetName())
		if err != nil {
			return err
		}

		if got["decision"] != decision {
			return fmt.Errorf("decision %q, want %q, of %v: %w", got["decision"], decision, got, world.ErrOther)
		}

		for key, want := range more {
			if !strings.Contains(got[key], want) {
				return fmt.Errorf("%s %q, want %q: %w", key, got[key], want, world.ErrOther)
			}
		}

		return nil
	}))
	if err != nil {
		t.Error(err)
	}
}

// auditOf reads what the audit log says last of an object, by the last part of
// the annotations' keys.
func auditOf(namespace, name string) (map[string]string, error) {
	file, err := os.Open(filepath.Join(running.LogDir(), "kube-apiserver.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It was read.

	out := map[string]string{}

	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return out, nil // The end.
		}

		var event struct {
			ObjectRef struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"objectRef"`
			Annotations map[string]string `json:"annotations"`
		}

		if !strings.HasPrefix(line, `{"kind":"Event"`) || json.Unmarshal([]byte(line), &event) != nil ||
			event.ObjectRef.Namespace != namespace || event.ObjectRef.Name != name {
			continue
		}

		of := map[string]string{}

		for key, value := range event.Annotations {
			if webhook, short, ok := strings.Cut(key, "/"); ok && strings.HasSuffix(webhook, v1alpha1.Group) {
				of[short] = value
			}
		}

		if len(of) > 0 {
			out = of
		}
	}
}
