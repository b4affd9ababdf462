// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
)

func TestARecordKeepsUsesWhileTheParentCarriesTheAllowance(t *testing.T) {
	given := func(id, field string) v1alpha1.Allowance {
		return v1alpha1.Allowance{ID: id, Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourcePolicy, Field: field}}
	}
	approved := v1alpha1.Allowance{ID: "1.0", Digest: "d", Approval: "u", Source: v1alpha1.AllowanceSource{Type: v1alpha1.SourceApproval, Name: "a"}}
	first, second := given("1.1", "data.a"), given("1.2", "data.a")

	rec := allowance.AddUses(v1alpha1.ObjectRecord{}, []v1alpha1.Use{allowance.UseOf(first), allowance.UseOf(approved), allowance.UseOf(first)},
		[]v1alpha1.Allowance{first, second, approved}, false)

	got, err := allowance.ParseRecord(carrying(v1alpha1.AnnotationRecord, allowance.FormatRecord(rec)))
	if err != nil || !allowance.Used(got, first) || !allowance.Used(got, approved) || allowance.Used(got, second) || len(got.Used) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}

	if got = allowance.AddUses(got, []v1alpha1.Use{allowance.UseOf(second)}, []v1alpha1.Allowance{second}, false); len(got.Used) != 1 || !allowance.Used(got, second) {
		t.Errorf("what the parent carries no more: %+v", got)
	}

	got.Used = append(got.Used, allowance.UseOf(approved))
	if got = allowance.AddUses(got, nil, nil, true); len(got.Used) != 1 || !allowance.Used(got, second) {
		t.Errorf("what a composition function does not tell of: %+v", got)
	}
}

func TestARecordHasTheLastWindows(t *testing.T) {
	var rec v1alpha1.ObjectRecord
	for i := range v1alpha1.MaxWindows + 2 {
		rec = allowance.AddWindow(rec, types.UID(strconv.Itoa(i)))
	}

	rec = allowance.AddWindow(rec, "5")
	if len(rec.Windows) != v1alpha1.MaxWindows || rec.Windows[0] != "5" || rec.Windows[1] != "17" {
		t.Errorf("%v", rec.Windows)
	}
}

func TestARecordThatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, text := range []string{"hans", `{"v":2,"request":"5.1"}`, `{"request":"5.1"}`, `{"v":1,"used":"all"}`} {
		u := carrying(v1alpha1.AnnotationRecord, text)
		if _, err := allowance.ParseRecord(u); err == nil || !strings.Contains(err.Error(), v1alpha1.AnnotationRecord) {
			t.Errorf("%s: %v", text, err)
		}
	}

	u := carrying(v1alpha1.AnnotationRecord, `{"v":1,"request":"5.2"}`)
	if got := []int64{allowance.LastRequest(u, 5), allowance.LastRequest(u, 6)}; !cmp.Equal(got, []int64{2, 0}) {
		t.Errorf("last request of generations 5 and 6: %v", got)
	}
}

// TestRepairsDoNotPushOutOfATraceWhatTheyRestore though there are many.
func TestRepairsDoNotPushOutOfATraceWhatTheyRestore(t *testing.T) {
	now := metav1.Now()
	have := []v1alpha1.TraceEntry{{Field: "data.k00", Initiator: "hans"}}

	for i := range 2 * v1alpha1.MaxTraceEntries {
		have = allowance.AddTrace(have, []v1alpha1.TraceEntry{{Field: fmt.Sprintf("data.k%02d", i+1), Repaired: &now}})
	}

	if len(have) != v1alpha1.MaxTraceEntries || have[len(have)-1].Field != "data.k00" || have[0].Repaired == nil {
		t.Errorf("the trace is %+v", have)
	}
}
