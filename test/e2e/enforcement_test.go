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

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
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

			why := []string{"spec.size", `policy "lab-plans" allows it only when Group platform-team changes spec.size`}
			if tc.refused && !mentions(err.Error(), why...) {
				t.Errorf("%s\n%q does not say %q", tc.reason, err, why)
			}

			if said := as.Take(); tc.warned != mentions(said, why...) {
				t.Errorf("%s\nWarnings: %q", tc.reason, said)
			}

			if got := l.size(t, task); got != tc.stored {
				t.Errorf("%s\nThe size is %q, want %q", tc.reason, got, tc.stored)
			}

			audited(t, l, task, tc.audited, map[string]string{"missing": `no policy about Plan allows it`})

			if tc.events {
				reason := "Kausality" + tc.audited
				if err := scenario.Eventually(t.Context(), "an event", l.told(task, reason)); err != nil {
					t.Errorf("%s\n%v", tc.reason, err)
				}
			}
		})
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
