// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package openreport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/internal/audit"
)

// Kinds of Reports.
const (
	KindReport        = "Report"
	KindClusterReport = "ClusterReport"
)

// Names of the CRDs of these kinds.
const (
	CRDReports        = "reports." + v1alpha1.GroupName
	CRDClusterReports = "clusterreports." + v1alpha1.GroupName
)

// LabelManagedBy says who keeps a Report.
//
// Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels.
const LabelManagedBy = "app.kubernetes.io/managed-by"

const (
	// MaxResults is the most results that one Report has, what is cut counted in the last.
	// With what each may hold it stays below half a mebibyte; the API server stores
	// objects of up to one and a half.
	MaxResults = 250
	// maxMessage is the most bytes of a result's message.
	maxMessage = 1024
	// policyCut is the policy of the result that counts what is cut.
	policyCut = "left-out"
)

// Properties of results.
const (
	propertyWhy    = "why"
	propertyRemedy = "remedy"
	propertySince  = "since"
	propertyPart   = "part"
)

// Author is who keeps Reports.
type Author struct {
	// Name of the Reports, in each namespace and of the ClusterReport, and the source of their
	// results.
	Name string
	// ManagedBy is their label [LabelManagedBy].
	ManagedBy string
}

// Object is a Report or a ClusterReport.
type Object interface {
	metav1.Object
	runtime.Object
}

// New returns an empty Report of a namespace, or a ClusterReport for none.
func New(namespace string) Object {
	if namespace == "" {
		return &v1alpha1.ClusterReport{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: KindClusterReport}}
	}

	return &v1alpha1.Report{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: KindReport},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
	}
}

// content is what a Report says.
type content struct {
	source  *string
	config  **v1alpha1.ReportConfiguration
	summary *v1alpha1.ReportSummary
	results *[]v1alpha1.ReportResult
}

func contentOf(o Object) content {
	switch r := o.(type) {
	case *v1alpha1.ClusterReport:
		return content{&r.Source, &r.Configuration, &r.Summary, &r.Results}
	case *v1alpha1.Report:
		return content{&r.Source, &r.Configuration, &r.Summary, &r.Results}
	default:
		return content{new(string), new(*v1alpha1.ReportConfiguration), &v1alpha1.ReportSummary{}, &[]v1alpha1.ReportResult{}}
	}
}

// Results of a Report; not to be modified.
func Results(o Object) []v1alpha1.ReportResult { return *contentOf(o).results }

// Write makes a Report say what was found: what matters most first, the most of them that
// fit, and how many do not. A result that was there before keeps its time. It returns whether the Report, in which all else stays, says
// anything else than before.
func (a Author) Write(o Object, found []audit.Finding, now time.Time) bool {
	said := contentOf(o)
	source, config, summary, before := *said.source, *said.config, *said.summary, *said.results
	labels := o.GetLabels()

	seen := map[string]metav1.Timestamp{}
	for _, r := range before {
		seen[keyOf(r)] = r.Timestamp
	}

	results := a.results(found, seen, metav1.Timestamp{Seconds: now.Unix()})

	o.SetName(a.Name)
	o.SetLabels(with(o.GetLabels(), LabelManagedBy, a.ManagedBy))

	*said.source, *said.results, *said.summary = a.Name, results, summarize(results)
	*said.config = &v1alpha1.ReportConfiguration{Limits: v1alpha1.Limits{MaxResults: MaxResults}}

	return !maps.Equal(labels, o.GetLabels()) || source != *said.source || summary != *said.summary ||
		!equality.Semantic.DeepEqual(config, *said.config) || !equality.Semantic.DeepEqual(before, results)
}

func with(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}

	out[key] = value

	return out
}

// results are those of some findings. What was seen before has the time of then.
func (a Author) results(found []audit.Finding, seen map[string]metav1.Timestamp, now metav1.Timestamp) []v1alpha1.ReportResult {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b audit.Finding) int {
		return cmp.Or(cmp.Compare(weight(a.Severity), weight(b.Severity)), audit.Compare(a, b))
	})

	cut := 0
	if len(found) > MaxResults {
		cut = len(found) - (MaxResults - 1)
		found = found[:MaxResults-1]
	}

	out := make([]v1alpha1.ReportResult, 0, len(found)+1)
	for _, f := range found {
		out = append(out, a.result(f))
	}

	if cut > 0 {
		out = append(out, v1alpha1.ReportResult{
			Source: a.Name, Policy: policyCut, Category: string(audit.Unknown), Severity: v1alpha1.ResultSeverity(audit.Info), Result: "skip",
			Description: fmt.Sprintf("%d more were found, for which there is no room here: kubectl kausality audit prints all", cut),
		})
	}

	for i := range out {
		out[i].Timestamp = now
		if before, ok := seen[keyOf(out[i])]; ok {
			out[i].Timestamp = before
		}
	}

	return out
}

// weight orders severities.
func weight(s audit.Severity) int {
	return slices.Index([]audit.Severity{audit.High, audit.Medium, audit.Low, audit.Info}, s)
}

// result is that of one finding.
func (a Author) result(f audit.Finding) v1alpha1.ReportResult {
	properties := map[string]string{propertyWhy: f.Why, propertyRemedy: change.Text(f.Remedy, maxMessage)}
	if f.Since != nil {
		properties[propertySince] = f.Since.UTC().Format(time.RFC3339)
	}

	if f.Part != "" {
		properties[propertyPart] = f.Part
	}

	return v1alpha1.ReportResult{
		Source: a.Name, Policy: string(f.Rule), Category: string(f.Category), Severity: v1alpha1.ResultSeverity(f.Severity),
		Result: v1alpha1.Result(f.Result), Scored: f.Result == audit.Fail,
		Description: change.Text(f.Message, maxMessage), Properties: properties,
		Subjects: []corev1.ObjectReference{{
			APIVersion: f.Object.APIVersion, Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name, UID: f.Object.UID,
		}},
	}
}

// keyOf tells results apart as [audit.Finding.Key] does findings.
func keyOf(r v1alpha1.ReportResult) string {
	f := audit.Finding{Rule: audit.Rule(r.Policy), Part: r.Properties[propertyPart]}
	for _, s := range r.Subjects {
		f.Object = audit.Ref{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, UID: s.UID}
	}

	return f.Key()
}

// summarize counts results. What is cut is counted as one that is skipped.
func summarize(results []v1alpha1.ReportResult) v1alpha1.ReportSummary {
	var out v1alpha1.ReportSummary

	for _, r := range results {
		switch r.Result {
		case v1alpha1.Result(audit.Fail):
			out.Fail++
		case v1alpha1.Result(audit.Warn):
			out.Warn++
		case v1alpha1.Result(audit.Error):
			out.Error++
		default:
			out.Skip++
		}
	}

	return out
}

// Unstructured is a Report without what a type has though nothing sets it.
func Unstructured(o Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a Report: %w", err)
	}

	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")

	return u, nil
}
