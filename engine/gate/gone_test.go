// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	cmp2 "cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/gate"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

const (
	isThere = `{type: Synced, status: "True", observedGeneration: GENERATION,`
	isGone  = `{type: Synced, status: "False", reason: ReconcileError, message: "observe failed: external resource does not exist", observedGeneration: GENERATION,`
)

// ofBefore says that another external object was there when the gate closed.
var ofBefore = fmt.Sprintf(`,"object":"%x"`, sha256.Sum256([]byte("before")))[:len(`,"object":"`)+16] + `"`

// goneOf is one whose provider says that its external object is gone.
func goneOf(t *testing.T, pairs ...string) *unstructured.Unstructured {
	t.Helper()

	text := strings.NewReplacer("[Observe, LateInitialize]", "[Observe]", isThere, isGone).Replace(drifting)

	return fixture.Parse(t, strings.NewReplacer(
		"RECORD", compared, "TRACE", "[]", "ALLOWANCES", "[]", "GENERATION", "8", "OUTSIDE", `{a: "1", b: "2", c: "3", zones: [y, x], more: "1"}`,
	).Replace(strings.NewReplacer(pairs...).Replace(text)))
}

func TestWhatIsGoneIsNotMadeByAnUpdate(t *testing.T) {
	recreates := strings.Replace(allowsB, "[Update]", "[Create, Update]", 1)

	for name, tc := range map[string]struct {
		reason    string
		pairs     []string
		opts      gate.Options
		deleting  bool
		move      gate.Move
		set       string
		why       string
		approvals int
		follows   string
	}{
		"Gone":   {reason: "It is told, and can be approved.", move: gate.Stay, set: "Observe", why: "is gone", approvals: 1},
		"Closed": {reason: "By a former version as well, had it said so.", pairs: []string{"[Observe]", "[Observe, LateInitialize]"}, move: gate.Stay, set: "Observe LateInitialize", why: "is gone", approvals: 1},
		"There":  {reason: "It is there.", pairs: []string{isGone, isThere}, move: gate.Stay, set: "Observe", why: "closed"},
		"Before": {reason: "It said so before the gate closed.", pairs: []string{"observedGeneration: GENERATION", "observedGeneration: 6"}, move: gate.Stay, set: "Observe", why: "closed"},
		"Otherwise": {
			reason: "Another error is no word about it.", pairs: []string{"external resource does not exist", "cannot connect"}, move: gate.Stay, set: "Observe", why: "closed",
		},
		"NeverThere": {reason: "It was never made.", pairs: []string{"OUTSIDE", "{}"}, move: gate.Stay, set: "Observe", why: "closed"},
		"Update": {
			reason: "To update it is to make it.", pairs: []string{"ALLOWANCES", allowsB, "TRACE", changeOfB}, move: gate.Stay, set: "Observe", why: "is gone", approvals: 1,
		},
		"UpdateExisted": {
			reason: "So it is of what was found.", pairs: []string{"ALLOWANCES", strings.ReplaceAll(allowsB, ".b", ""), "RECORD", compared + `,"existed":true`}, move: gate.Stay,
			set: "Observe", why: "is gone", approvals: 1,
		},
		"Window": {
			reason: "A window that reverts drift makes nothing.", opts: gate.Options{}, move: gate.Stay, set: "Observe", why: "is gone", approvals: 1,
		},
		"Create": {
			reason: "That is allowed.", pairs: []string{"ALLOWANCES", recreates, "TRACE", changeOfB}, move: gate.OpenUp,
			set: "Observe LateInitialize Create Update", approvals: 1,
		},
		"NotLookedFor": {
			reason: "Of this kind nobody wants to know.", pairs: []string{"ALLOWANCES", allowsB, "TRACE", changeOfB}, opts: gate.Options{WithoutDrift: management.AllKinds()},
			move: gate.OpenUp, set: "Observe LateInitialize Update",
		},
		"Another": {
			reason: "It is told, and can be approved.", pairs: []string{isGone, isThere, "RECORD", compared + ofBefore, "OUTSIDE", `{a: "1", b: "2", c: "3", arn: other}`},
			move: gate.Stay, set: "Observe", why: "another external object", approvals: 1, follows: management.ActionUpdate,
		},
		"AnotherUpdate": {
			reason: "What is allowed is allowed of the one that was there.", approvals: 1, follows: management.ActionUpdate, move: gate.Stay, set: "Observe", why: "another external object",
			pairs: []string{isGone, isThere, "RECORD", compared + ofBefore, "OUTSIDE", `{a: "1", b: "2", c: "3", arn: other}`, "ALLOWANCES", allowsB, "TRACE", changeOfB},
		},
		"SameUpdate": {
			reason: "It is that one.", move: gate.OpenUp, set: "Observe LateInitialize Update",
			pairs: []string{isGone, isThere, "RECORD", compared + ofBefore, "OUTSIDE", `{a: "1", b: "2", c: "3", arn: before}`, "ALLOWANCES", allowsB, "TRACE", changeOfB},
		},
		"Deleted": {
			reason: "A provider that may only observe does not let go of what is gone.", deleting: true, move: gate.CloseUp, set: "Observe LateInitialize",
		},
		"DeletedThere": {reason: "It is there.", pairs: []string{isGone, isThere}, deleting: true, move: gate.Stay, set: "Observe"},
	} {
		t.Run(name, func(t *testing.T) {
			u := goneOf(t, tc.pairs...)

			if tc.deleting {
				now := metav1.NewTime(time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC))
				u.SetDeletionTimestamp(&now)
			}

			tc.opts.LateInitialize = true
			if name == "Window" {
				tc.opts.Windows = []v1alpha1.UpgradeAllowance{windowFor(t)}
			}

			plan, err := gate.PlanFor(u, tc.opts, time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC))
			if err != nil || plan.Move != tc.move || !strings.Contains(plan.Why, tc.why) || strings.Join(plan.Policies, " ") != tc.set {
				t.Errorf("%s\n%s %v: %s, %v; want %s %s: %s", tc.reason, plan.Move, plan.Policies, plan.Why, err, tc.move, tc.set, tc.why)
			}

			entries := managed.DriftEntries(u, tc.opts.WithoutDrift)
			if len(entries) != tc.approvals {
				t.Errorf("%s\nheld: %+v", tc.reason, entries)
			}

			for _, e := range entries {
				if diff := cmp.Diff([]string{cmp2.Or(tc.follows, management.ActionCreate)}, e.Follows); diff != "" || e.Digest == "" {
					t.Errorf("it is approved as %+v", e)
				}
			}

			trimmed := u.DeepCopy()
			gate.Trim(trimmed, nil)

			if diff := cmp.Diff(entries, managed.DriftEntries(trimmed, tc.opts.WithoutDrift)); diff != "" {
				t.Errorf("trimmed, -want, +got:\n%s", diff)
			}
		})
	}
}

// TestWhatSomebodyElseMakesIsNotWhatWasMadeAgain has a gate open to have an external object made again, and close.
func TestWhatSomebodyElseMakesIsNotWhatWasMadeAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, made string
		known        bool
		// joined is true where another allowance has come since.
		joined bool
	}{
		"Made":      {reason: "What its provider has made it shows when it looks again.", made: "2026-01-01T00:05:00Z"},
		"Joined":    {reason: "So it does where another allowance has come since.", made: "2026-01-01T00:05:00Z", joined: true},
		"ByAnother": {reason: "Its provider has made nothing: what was there before is what it stands for.", known: true},
		"Before":    {reason: "Nor since the gate is open.", made: "2025-12-31T23:00:00Z", known: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := goneOf(t, isGone, isThere, "[Observe]", "[Observe, LateInitialize, Create]", `"state":"Closed","generation":7`, `"state":"Open","actions":["Create"],"generation":8`,
				"RECORD", compared+ofBefore, "ALLOWANCES", strings.Replace(allowsB, "[Update]", "[Create]", 1), "OUTSIDE", `{a: "1", b: "2", c: "3", zones: [x, y], arn: other}`)

			annotations := u.GetAnnotations()
			if !tc.joined {
				annotations[v1alpha1.AnnotationGate] = strings.Replace(annotations[v1alpha1.AnnotationGate], `"consumed":3`, `"consumed":8`, 1)
			}

			if tc.made != "" {
				annotations[resource.AnnotationCreated] = tc.made
			}

			u.SetAnnotations(annotations)

			plan, err := gate.PlanFor(u, gate.Options{LateInitialize: true, Settle: time.Minute}, time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC))
			if err != nil || plan.Move != gate.CloseUp {
				t.Fatalf("%s: %s, %v", plan.Move, plan.Why, err)
			}

			if (plan.Record.Object != "") != tc.known {
				t.Errorf("%s\nrecorded %+v", tc.reason, plan.Record)
			}
		})
	}
}
