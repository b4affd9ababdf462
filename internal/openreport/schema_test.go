// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package openreport_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/internal/audit"
	"github.com/kausality-io/kausality-crossplane/internal/openreport"
)

// schema is one of OpenReports' own, of the version that go.mod pins.
func schema(tb testing.TB, file string) *apiextensions.JSONSchemaProps {
	tb.Helper()

	dir, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	if err != nil {
		tb.Fatal(err)
	}

	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", file))
	if err != nil {
		tb.Fatal(err)
	}

	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, crd); err != nil {
		tb.Fatal(err)
	}

	out := &apiextensions.CustomResourceValidation{}
	if err := extv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, out, nil); err != nil {
		tb.Fatal(err)
	}

	return out.OpenAPIV3Schema
}

// problems are what an API server with a schema says of an object: what is wrong with
// it, and what it drops.
func problems(tb testing.TB, props *apiextensions.JSONSchemaProps, object map[string]any) []string {
	tb.Helper()

	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		tb.Fatal(err)
	}

	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		tb.Fatal(err)
	}

	stored := runtime.DeepCopyJSON(object)
	defaulting.Default(stored, structural)

	var out []string

	for _, path := range pruning.PruneWithOptions(stored, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		out = append(out, "dropped: "+path)
	}

	for _, err := range validation.ValidateCustomResource(field.NewPath(""), stored, validator) {
		out = append(out, err.Error())
	}

	if diff := cmp.Diff(object, stored); diff != "" {
		out = append(out, "stored otherwise: "+diff)
	}

	return out
}

// TestOpenReportsSchemaTakesWhatIsWritten all of it: it prunes nothing, and refuses what is
// none of its words.
func TestOpenReportsSchemaTakesWhatIsWritten(t *testing.T) {
	t.Parallel()

	found := make([]audit.Finding, 0, 13+openreport.MaxResults)

	for _, severity := range []audit.Severity{audit.High, audit.Medium, audit.Low, audit.Info} {
		for _, result := range []audit.Result{audit.Fail, audit.Warn, audit.Error} {
			f := finding(string(severity)+string(result), severity, result)
			f.Since, f.Part = &metav1.Time{Time: noon()}, "part"
			found = append(found, f)
		}
	}

	found = append(found, audit.Finding{Rule: audit.KindNotGoverned, Severity: audit.Low, Result: audit.Warn, Object: audit.Ref{APIVersion: "v1", Kind: "ConfigMap"}})
	for range openreport.MaxResults {
		found = append(found, found[0])
	}

	for namespace, file := range map[string]string{"team-a": "openreports.io_reports.yaml", "": "openreports.io_clusterreports.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()

			props := schema(t, file)

			o := openreport.New(namespace)
			author().Write(o, found, noon().Add(time.Nanosecond))

			u, err := openreport.Unstructured(o)
			if err != nil {
				t.Fatal(err)
			}

			if got := problems(t, props, u.Object); len(got) > 0 {
				t.Errorf("a Report with all there is: %s", strings.Join(got, "\n"))
			}

			// A check that takes anything would be none.
			if err := unstructured.SetNestedField(u.Object, "kausality", "by"); err != nil {
				t.Fatal(err)
			}

			results, _, _ := unstructured.NestedSlice(u.Object, "results")
			first, _ := results[0].(map[string]any)
			first["result"] = "bad"
			delete(first, "policy")

			if err := unstructured.SetNestedSlice(u.Object, results, "results"); err != nil {
				t.Fatal(err)
			}

			if got := strings.Join(problems(t, props, u.Object), "\n"); !strings.Contains(got, "dropped: by") ||
				!strings.Contains(got, "results[0].policy: Required") || !strings.Contains(got, `results[0].result: Unsupported value: "bad"`) {
				t.Errorf("what is wrong: %s", got)
			}
		})
	}
}
