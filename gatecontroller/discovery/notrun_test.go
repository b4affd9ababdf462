// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

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
// not know: its own record says so, and we let it. The manager is another one each time,
// and remembers nothing.
func TestAnXRReportsThatTheFunctionDoesNotRun(t *testing.T) {
	const (
		ran = `
apiVersion: shop.example.org/v1
kind: Store
metadata: {name: corner, namespace: a, uid: "1"}
spec: {crossplane: {compositionRevisionRef: {name: stores-2}}}
status: {conditions: [{type: Ready, status: "True"}, {type: Kausality, status: "True", reason: Allowed, message: "generation 1: settled", lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: KausalityState, status: "True", message: '{"v":1,"progress":{"phase":"Settled","generation":1,"settled":{"generation":1}},"revision":"stores-1"}'}]}
`
		dropped = "generation 1: CompositionRevision stores-2 has no step"
	)

	u := fixture.Parse(t, ran)
	w := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).WithStatusSubresource(u).Build()

	for i, step := range []struct {
		reason  string
		runs    bool
		says    string // What the function says before we look, if anything.
		at      string // The revision at which it ran then.
		status  string
		message string
	}{
		{"It runs.", true, "", "", "True", "generation 1: settled"},
		{"It does not any more.", false, "", "", "Unknown", dropped},
		{"Crossplane writes what it read before.", false, "generation 1: settled", "stores-1", "Unknown", dropped},
		{"And once more, late.", false, "generation 1: settled", "stores-1", "Unknown", dropped},
		{"That stays so.", false, "", "", "Unknown", dropped},
		{"It runs under another name.", false, "generation 1: settled", "stores-2", "True", "generation 1: settled"},
		{"That stays so, too.", false, "", "", "True", "generation 1: settled"},
	} {
		got := fixture.Parse(t, ran)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(u), got); err != nil {
			t.Fatal(err)
		}

		if step.says != "" {
			list := resource.List(got.Object, "status", "conditions")
			said, _ := list[1].(map[string]any)
			said["status"], said["message"], said["reason"], said["lastTransitionTime"] = "True", step.says, "Allowed", "2026-01-01T00:00:00Z"
			state, _ := list[2].(map[string]any)
			state["message"] = resource.FormatState(v1alpha1.State{
				Progress: v1alpha1.Progress{Phase: v1alpha1.PhaseSettled, Generation: 1}, Revision: "stores-1", Ran: step.at,
			})

			if err := w.Status().Update(t.Context(), got); err != nil {
				t.Fatal(err)
			}
		}

		c := &Kinds{}
		c.Set(Findings{Revisions: map[string]bool{"stores-1": true, "stores-2": step.runs}}, nil, nil)

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

		if since := said.LastTransitionTime; (since == "2026-01-01T00:00:00Z") != (said.Status == "True") {
			t.Errorf("step %d: %s\nsince %s", i, step.reason, since)
		}
	}
}
