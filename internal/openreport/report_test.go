// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package openreport_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
)

func author() openreport.Author {
	return openreport.Author{Name: "kausality", ManagedBy: "kausality-manager"}
}

func noon() time.Time { return time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC) }

// finding is one on an object of a name.
func finding(name string, severity audit.Severity, result audit.Result) audit.Finding {
	return audit.Finding{
		Rule: audit.Held, Category: audit.Pending, Severity: severity, Result: result, Namespace: "team-a",
		Object:  audit.Ref{APIVersion: "example.org/v1", Kind: "Database", Namespace: "team-a", Name: name, UID: types.UID(name)},
		Message: name + " waits", Why: "because", Remedy: "ask for it",
	}
}

// lines are results as POLICY SEVERITY RESULT OBJECT TIME: MESSAGE.
func lines(o openreport.Object) []string {
	out := make([]string, 0, len(openreport.Results(o)))

	for _, r := range openreport.Results(o) {
		name := ""
		for _, s := range r.Subjects {
			name = s.Kind + " " + s.Name
		}

		out = append(out, fmt.Sprintf("%s %s %s %s %d: %s", r.Policy, r.Severity, r.Result, name, r.Timestamp.Seconds-noon().Unix(), r.Description))
	}

	return out
}

func TestAReportSaysWhatMattersMostFirst(t *testing.T) {
	t.Parallel()

	o := openreport.New("team-a")
	f := finding("b", audit.High, audit.Fail)
	f.Since, f.Part = &metav1.Time{Time: noon().Add(-time.Hour)}, "composed"

	if !author().Write(o, []audit.Finding{finding("c", audit.Info, audit.Error), finding("a", audit.Low, audit.Warn), f}, noon()) {
		t.Error("a new Report says nothing new")
	}

	want := []string{"held high fail Database b 0: b waits", "held low warn Database a 0: a waits", "held info error Database c 0: c waits"}
	if diff := cmp.Diff(want, lines(o)); diff != "" {
		t.Errorf("results, -want, +got:\n%s", diff)
	}

	r, ok := o.(*v1alpha1.Report)
	if !ok {
		t.Fatalf("%T", o)
	}

	if diff := cmp.Diff(v1alpha1.ReportSummary{Fail: 1, Warn: 1, Error: 1}, r.Summary); diff != "" {
		t.Errorf("summary, -want, +got:\n%s", diff)
	}

	if r.Name != "kausality" || r.Namespace != "team-a" || r.Source != "kausality" || r.Labels[openreport.LabelManagedBy] != "kausality-manager" {
		t.Errorf("it is %s/%s of %s with %v", r.Namespace, r.Name, r.Source, r.Labels)
	}

	properties := map[string]string{"why": "because", "remedy": "ask for it", "since": "2026-03-05T11:00:00Z", "part": "composed"}
	if diff := cmp.Diff(properties, r.Results[0].Properties); diff != "" {
		t.Errorf("properties, -want, +got:\n%s", diff)
	}
}

// TestAResultKeepsItsTime and a Report that says the same is not written again.
func TestAResultKeepsItsTime(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		then   []audit.Finding
		change bool
		want   []string
	}{
		"Same": {
			reason: "The same an hour later is nothing new.", then: []audit.Finding{finding("a", audit.Low, audit.Warn)},
			want: []string{"held low warn Database a 0: a waits"},
		},
		"Worse": {
			reason: "What gets worse is still the same.", then: []audit.Finding{finding("a", audit.Medium, audit.Fail)}, change: true,
			want: []string{"held medium fail Database a 0: a waits"},
		},
		"More": {
			reason: "What comes has its own time.", change: true,
			then: []audit.Finding{finding("a", audit.Low, audit.Warn), finding("b", audit.Low, audit.Warn)},
			want: []string{"held low warn Database a 0: a waits", "held low warn Database b 3600: b waits"},
		},
		"Less": {reason: "What is gone is gone.", change: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, namespace := range []string{"", "team-a"} {
				o := openreport.New(namespace)
				o.SetLabels(map[string]string{"somebody": "else"})
				author().Write(o, []audit.Finding{finding("a", audit.Low, audit.Warn)}, noon())

				if changed := author().Write(o, tc.then, noon().Add(time.Hour)); changed != tc.change {
					t.Errorf("%s\nchanged %v", tc.reason, changed)
				}

				if diff := cmp.Diff(tc.want, lines(o), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}

				if o.GetLabels()["somebody"] != "else" {
					t.Errorf("labels %v", o.GetLabels())
				}
			}
		})
	}
}

// TestWhatOthersChangedIsPutBack be it a label, a result or the source.
func TestWhatOthersChangedIsPutBack(t *testing.T) {
	t.Parallel()

	found := []audit.Finding{finding("a", audit.Low, audit.Warn)}

	for name, change := range map[string]func(*v1alpha1.Report){
		"Label":   func(r *v1alpha1.Report) { r.Labels = nil },
		"Source":  func(r *v1alpha1.Report) { r.Source = "other" },
		"Summary": func(r *v1alpha1.Report) { r.Summary.Pass = 7 },
		"Limits":  func(r *v1alpha1.Report) { r.Configuration = nil },
		"Message": func(r *v1alpha1.Report) { r.Results[0].Description = "all is well" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			want, got := &v1alpha1.Report{}, &v1alpha1.Report{}
			author().Write(want, found, noon())
			author().Write(got, found, noon())
			change(got)

			if !author().Write(got, found, noon().Add(time.Hour)) {
				t.Error("it is taken for unchanged")
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestAReportIsBounded and counts what it has no room for.
func TestAReportIsBounded(t *testing.T) {
	t.Parallel()

	found := make([]audit.Finding, 0, openreport.MaxResults+3)

	for i := range openreport.MaxResults + 3 {
		f := finding(fmt.Sprintf("%04d", i), audit.Low, audit.Warn)
		f.Message = strings.Repeat("é", 5000)
		found = append(found, f)
	}

	o := openreport.New("")
	author().Write(o, found, noon())

	results := openreport.Results(o)
	last := results[len(results)-1]

	if len(results) != openreport.MaxResults || last.Result != "skip" || !strings.HasPrefix(last.Description, "4 more were found") {
		t.Errorf("%d results, the last %+v", len(results), last)
	}

	if n := len(results[0].Description); n > 1024 {
		t.Errorf("a message has %d bytes", n)
	}

	if author().Write(o, found, noon().Add(time.Hour)) {
		t.Error("the same is written again")
	}
}

func TestFindingsAreReportedWhereTheyMatter(t *testing.T) {
	t.Parallel()

	a, b, none := finding("a", audit.Low, audit.Warn), finding("b", audit.Low, audit.Warn), finding("c", audit.Low, audit.Warn)
	b.Namespace, none.Namespace = "team-b", ""

	want := map[string][]audit.Finding{"team-a": {a}, "team-b": {b}, "": {none}}
	if diff := cmp.Diff(want, openreport.ByNamespace([]audit.Finding{a, b, none}), cmp.AllowUnexported(audit.Finding{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
