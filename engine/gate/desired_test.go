// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/gate/managed"
	"github.com/kausality-io/kausality-crossplane/engine/management"
)

func recording(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{}, "managementPolicies": []any{"Observe"}}}}
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredPolicies: text})

	return u
}

func TestWhatACompositionAsksForHasOneText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := []string{"Observe", "LateInitialize", "Create", "Update", "Delete", "*"}
		set := rapid.SliceOfN(rapid.SampledFrom(actions), 0, 8).Draw(t, "set")
		mode := rapid.SampledFrom([]v1alpha1.Mode{"", v1alpha1.ModeHold, v1alpha1.ModeAudit}).Draw(t, "mode")

		text := management.FormatDesired(v1alpha1.DesiredPolicies{Policies: set, Mode: mode})
		if again := append([]string{}, rapid.Permutation(set).Draw(t, "again")...); management.FormatDesired(v1alpha1.DesiredPolicies{Policies: again, Mode: mode}) != text {
			t.Fatalf("%v has another text than %v", again, set)
		}

		u := recording(text)

		got, err := management.ParseDesired(u)
		if err != nil || management.FormatDesired(got) != text || !management.Same(got.Policies, set) || got.V != v1alpha1.RecordVersion {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}

		if !management.HasDesired(u) || !management.Governed(u) || management.Audited(u) != (mode == v1alpha1.ModeAudit) {
			t.Fatalf("%s: governed %t, audited %t", text, management.Governed(u), management.Audited(u))
		}

		deletes := slices.Contains(management.Acting(set), management.ActionDelete)
		if slices.Contains(management.KeepsExternal(), text) == deletes {
			t.Fatalf("%s: deletes %t, and the guards read otherwise", text, deletes)
		}
	})

	if n := len(management.KeepsExternal()); n != 46 {
		t.Errorf("%d texts without Delete", n)
	}
}

func TestNoOtherTextIsRead(t *testing.T) {
	for name, text := range map[string]string{
		"Former": "- '*'\n", "Broken": "{", "Version": `{"v":2,"policies":["*"]}`, "NoVersion": `{"policies":["*"]}`, "Order": `{"v":1,"policies":["Update","Observe"]}`,
		"Space": `{"v": 1,"policies":["*"]}`, "More": `{"v":1,"policies":["*","Observe"]}`, "Field": `{"v":1,"policies":["*"],"more":1}`,
		"Hold": `{"v":1,"policies":["*"],"mode":"Hold"}`, "Action": `{"v":1,"policies":["Destroy"]}`,
	} {
		u := recording(text)
		if _, err := management.ParseDesired(u); err == nil || !strings.Contains(err.Error(), v1alpha1.AnnotationDesiredPolicies) {
			t.Errorf("%s: %v", name, err)
		}

		// It is governed, for it may be of a later version.
		if !management.HasDesired(u) || management.Audited(u) {
			t.Errorf("%s: recorded %t, audited %t", name, management.HasDesired(u), management.Audited(u))
		}
	}
}

func TestTheTextsThatGuardsCompareWithAreThoseWritten(t *testing.T) {
	var got []string

	for _, audit := range []bool{false, true} {
		text, err := allowance.FormatGate(v1alpha1.GateRecord{State: v1alpha1.GateUngated, Audit: audit})
		if err != nil {
			t.Fatal(err)
		}

		got = append(got, text)
	}

	if diff := cmp.Diff(managed.UngatedRecords(), got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	for text, rec := range map[string]v1alpha1.DesiredPolicies{
		management.NoPolicies: {}, management.NoPoliciesAudit: {Mode: v1alpha1.ModeAudit},
	} {
		if got := management.FormatDesired(rec); got != text {
			t.Errorf("%q, want %q", got, text)
		}

		if u := recording(text); management.HasDesired(u) || management.Governed(u) || management.Audited(u) != (rec.Mode != "") {
			t.Errorf("%s: governed", text)
		}
	}
}
