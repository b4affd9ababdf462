// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kausality-io/kausality-crossplane/internal/removal"
)

const governed = `
apiVersion: rds.example.org/v1
kind: Instance
metadata:
  name: db-2
  annotations: {kausality.io/desired-policies: '{"v":1,"policies":["Observe","Create"]}', kausality.io/gate: "{v: 1, state: Closed, generation: 1}"}
spec: {managementPolicies: [Observe], forProvider: {size: 1}}`

func TestWhatAnAPIServerRefusesThoughNobodyIsToBeAskedIsTriedAgain(t *testing.T) {
	t.Parallel()

	errOther := errors.New("no")
	instances := schema.GroupResource{Group: "rds.example.org", Resource: "instances"}

	for name, tc := range map[string]struct {
		reason  string
		refused error
		tries   int
	}{
		"Guard": {
			reason:  "A guard that is gone is seen to be a moment later.",
			refused: apierrors.NewForbidden(instances, "db-2", errors.New("ValidatingAdmissionPolicy 'kausality-gate-writer' denied request")), tries: 3,
		},
		"Webhook": {
			reason:  "So is a webhook.",
			refused: apierrors.NewInternalError(errors.New(`failed calling webhook "governed.kausality.io": connection refused`)), tries: 3,
		},
		"Conflict": {reason: "Somebody was faster.", refused: apierrors.NewConflict(instances, "db-2", errOther), tries: 3},
		"Other":    {reason: "Others mean it.", refused: apierrors.NewInternalError(errOther), tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := given(t, []string{governed}, "")
			tries := 0

			client.PrependReactor("patch", "instances", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++

				return tries < 3, nil, tc.refused
			})

			// Crossplane has taken away meanwhile what its function said.
			earlier := parse(t, governed)
			live := parse(t, strings.Replace(governed, `kausality.io/desired-policies: '{"v":1,"policies":["Observe","Create"]}', `, "", 1))

			if err := client.Tracker().Update(instances.WithVersion("v1"), live, ""); err != nil {
				t.Fatal(err)
			}

			var out bytes.Buffer

			err := uninstallation{c}.leave(t.Context(), &out, []leaving{{object: earlier}}, removal.Options{Leave: removal.LeaveOpen})
			if (err == nil) != (tc.tries == 3) || tries != tc.tries {
				t.Fatalf("%s\n%d tries: %v", tc.reason, tries, err)
			}

			if want := "is open, managementPolicies [Observe Create]"; err == nil && !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q: %s", want, out.String())
			}
		})
	}
}

func TestAKindIsRemovedOnceItsGuardIsSeenToBeGone(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		dry    bool
		tries  int
	}{
		"Done": {reason: "An API server may see a moment later that a guard is gone.", tries: 3},
		"Dry":  {reason: "In a dry run it is there.", dry: true, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, client := given(t, []string{governed}, "")
			if tc.dry {
				c.dry.mode = dryServer
			}

			instances := schema.GroupResource{Group: "rds.example.org", Resource: "instances"}
			tries := 0

			client.PrependReactor("delete", "instances", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++

				return tries < 3, nil, apierrors.NewForbidden(instances, "db-2",
					errors.New("ValidatingAdmissionPolicy 'kausality-crd-allowancepolicies' denied request"))
			})

			var out bytes.Buffer

			err := uninstallation{c}.removeAll(t.Context(), &out, []named{{gvk: parse(t, governed).GroupVersionKind(), name: "db-2"}})
			if err != nil || tries != tc.tries || !strings.Contains(out.String(), "Instance db-2") {
				t.Errorf("%s\nremoveAll: %v after %d tries, want it done after %d: %s", tc.reason, err, tries, tc.tries, out.String())
			}
		})
	}
}
