// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package composed

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/gatecontroller/object"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// TestAnXRReportsThatTheFunctionDoesNotRun has a function run under a name that we do
// not know: it says otherwise again, and we let it.
func TestAnXRReportsThatTheFunctionDoesNotRun(t *testing.T) {
	const ran = `
apiVersion: shop.example.org/v1
kind: Store
metadata: {name: corner, namespace: a, uid: "1"}
spec: {crossplane: {compositionRevisionRef: {name: stores-1}}}
status: {conditions: [{type: Ready, status: "True"}, {type: Kausality, status: "True", reason: Allowed, message: "generation 1: settled", lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: KausalityState, status: "True", message: '{"v":1,"progress":{"phase":"Settled","generation":1,"settled":{"generation":1}}}'}]}
`

	u := fixture.Parse(t, ran)
	w := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).WithStatusSubresource(u).Build()
	c := &Kinds{}

	for i, step := range []struct {
		reason  string
		runs    bool
		says    string // What the function says before we look, if anything.
		status  string
		message string
	}{
		{"It runs.", true, "", "True", "generation 1: settled"},
		{"It does not any more.", false, "", "Unknown", "generation 1: CompositionRevision stores-1 has no step"},
		{"Crossplane writes what it read before.", false, "before", "Unknown", "generation 1: CompositionRevision stores-1 has no step"},
		{"That stays so.", false, "", "Unknown", "generation 1: CompositionRevision stores-1 has no step"},
		{"It runs under another name.", false, "generation 2: settled", "True", "generation 2: settled"},
		{"It runs under its own again.", true, "", "True", "generation 2: settled"},
		{"And does not any more.", false, "", "Unknown", "generation 1: CompositionRevision stores-1 has no step"},
	} {
		c.known.Revisions = map[string]bool{"stores-1": step.runs}

		got := fixture.Parse(t, ran)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(u), got); err != nil {
			t.Fatal(err)
		}

		if step.says != "" {
			m, _ := resource.List(got.Object, "status", "conditions")[1].(map[string]any)
			m["status"], m["message"] = "True", step.says

			if step.says == "before" {
				m["message"], m["reason"], m["lastTransitionTime"] = "generation 1: settled", "Allowed", "2026-01-01T00:00:00Z"
			}

			if err := w.Status().Update(t.Context(), got); err != nil {
				t.Fatal(err)
			}
		}

		if err := c.ReportNotRun(t.Context(), object.Writer{Client: w}, got); err != nil {
			t.Fatal(err)
		}

		if err := w.Get(t.Context(), client.ObjectKeyFromObject(u), got); err != nil {
			t.Fatal(err)
		}

		said, _ := resource.ConditionOf(got, v1alpha1.ConditionKausality)
		if said.Status != step.status || !strings.HasPrefix(said.Message, step.message) || !resource.Ready(got) {
			t.Errorf("step %d: %s\ncondition %+v", i, step.reason, said)
		}

		if since := said.LastTransitionTime; (since == "2026-01-01T00:00:00Z") != (i == 0) {
			t.Errorf("step %d: %s\nsince %s", i, step.reason, since)
		}
	}
}
