// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/fn"
	"github.com/kausality-io/kausality-crossplane/internal/decisionlog"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// firstState is what the function handed to the next run of approvedXR.
const firstState = `{"v":1,"progress":{"phase":"Settled","generation":12,"settled":{"generation":12}},"revision":"db-1"}`

// approvedXR is an XR that has settled, without allowances, with a revision and a list.
const approvedXR = `
apiVersion: example.org/v1alpha1
kind: XDatabase
metadata:
  name: db
  uid: xr-uid
  generation: 12
  annotations:
    kausality.io/initialized: '{"v":1}'
spec: {size: large, crossplane: {compositionRevisionRef: {name: db-2}}}
status:
  conditions:
  - {type: Ready, status: "True", observedGeneration: 12}
  - {type: Kausality, status: "True", reason: Allowed, message: "generation 12: settled"}
  - {type: KausalityState, status: "True", reason: Allowed, message: '` + firstState + `'}
`

// withAllowances is an XR with the allowances that the manager writes for an approval.
func withAllowances(t *testing.T, kind, field, digest string, follows ...string) string {
	t.Helper()

	hop := v1alpha1.Hop{
		Kind: "ChangeApproval", Namespace: new("team-a"), Name: "xdatabase-db-x7k2p", Generation: 1, Field: digest,
		Attestations: map[string]string{"reason": "CHG-1"},
	}
	base := v1alpha1.Allowance{Generation: 12, Initiator: "anna", Digest: digest, Approval: "cha-uid", Trace: []v1alpha1.Hop{hop}}

	a := base
	a.APIGroup, a.Kind, a.Mutation = "kubernetes.crossplane.io", kind, field

	list := []v1alpha1.Allowance{a}

	if len(follows) > 0 {
		e := base
		e.Relation, e.Mutations = v1alpha1.RelationExternal, follows
		list = append(list, e)
	}

	text, err := json.Marshal(allowance.FormatList(fixture.AllSourced(list)))
	if err != nil {
		t.Fatal(err)
	}

	return strings.Replace(approvedXR, "annotations:\n", "annotations:\n    kausality.io/allowances: "+string(text)+"\n", 1)
}

// heldList is what a response tells the manager.
func heldList(t *testing.T, rsp *fnv1.RunFunctionResponse) v1alpha1.State {
	t.Helper()

	for _, c := range rsp.GetConditions() {
		if c.GetType() != v1alpha1.ConditionState {
			continue
		}

		var out v1alpha1.State
		if err := json.Unmarshal([]byte(c.GetMessage()), &out); err != nil {
			t.Fatal(err)
		}

		return out
	}

	t.Fatalf("no list for the manager: %v", rsp)

	return v1alpha1.State{}
}

// storedOf is an observed resource as Crossplane makes it of a response.
func storedOf(t *testing.T, observed string, rsp *fnv1.RunFunctionResponse) *fnv1.Resource {
	t.Helper()

	u := &unstructured.Unstructured{Object: resourceOf(t, observed).GetResource().AsMap()}
	is := rsp.GetDesired().GetResources()["database"].GetResource().AsMap()

	spec, _ := is["spec"].(map[string]any)
	into, _ := u.Object["spec"].(map[string]any)
	maps.Copy(into, spec)

	meta, _ := is["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)

	all := u.GetAnnotations()
	for key, v := range annotations {
		all[key], _ = v.(string)
	}

	u.SetAnnotations(all)

	st, err := structpb.NewStruct(u.Object)
	if err != nil {
		t.Fatal(err)
	}

	return &fnv1.Resource{Resource: st}
}

func engineOf(r *fnv1.Resource) string {
	return r.GetResource().GetFields()["spec"].GetStructValue().GetFields()["forProvider"].GetStructValue().GetFields()["engine"].GetStringValue()
}

const observedWithUID = "\nmetadata:\n  uid: obj-uid\n"

// TestAnApprovedChangeIsLetThroughOnceAndToThatValueAlone from the list that is shown to the
// run that has seen the effect.
func TestAnApprovedChangeIsLetThroughOnceAndToThatValueAlone(t *testing.T) {
	observed := strings.Replace(observedObject, "\nmetadata:\n", observedWithUID, 1)

	first := heldList(t, run(t, call(t, approvedXR, observed, sized("small", "mysql"), "")))
	if len(first.Changes) != 1 {
		t.Fatalf("held: %+v", first)
	}

	entry := first.Changes[0]
	want := v1alpha1.HeldChange{
		Ref:              v1alpha1.ObjectReference{APIVersion: "kubernetes.crossplane.io/v1alpha2", Kind: "Object", Name: "db-obj", UID: "obj-uid"},
		ComposedResource: "database", Field: "spec.forProvider.engine", From: "postgres", To: "mysql",
		Digest: entry.Digest, Follows: []string{"Update"}, Missing: entry.Missing, At: "12.0",
		Cause: &v1alpha1.Cause{Type: v1alpha1.CauseComposition, Revision: "db-2"},
	}

	if diff := cmp.Diff(want, entry); diff != "" || entry.Digest == "" || first.Revision != "db-1" || first.Ran != "db-2" {
		t.Fatalf("what is listed, -want, +got:\n%s\nof revision %s, ran at %s", diff, first.Revision, first.Ran)
	}

	xr := withAllowances(t, "Object", "spec.forProvider.engine", entry.Digest, "Update")

	// It is let through as often as it is rendered, until it was seen.
	var rsp *fnv1.RunFunctionResponse

	for range 10 {
		rsp = run(t, call(t, xr, observed, sized("small", "mysql"), ""))
		if got := engineOf(rsp.GetDesired().GetResources()["database"]); got != "mysql" {
			t.Fatalf("engine is %s: %v", got, rsp.GetConditions())
		}
	}

	use := func(state v1alpha1.ApprovalUseState) []v1alpha1.ApprovalUse {
		return []v1alpha1.ApprovalUse{{Approval: "cha-uid", Digest: entry.Digest, State: state}}
	}

	if diff := cmp.Diff(use(v1alpha1.ApprovalApplying), heldList(t, rsp).Approvals); diff != "" {
		t.Errorf("the approval while it is applied, -want, +got:\n%s", diff)
	}

	// Another value is not, nor another field beside it.
	for name, desired := range map[string]string{"oracle": sized("small", "oracle"), "large": sized("large", "postgres")} {
		rsp := run(t, call(t, xr, observed, desired, ""))
		list := heldList(t, rsp)

		if got := engineOf(rsp.GetDesired().GetResources()["database"]); got != "postgres" || len(list.Changes) != 1 {
			t.Errorf("%s: engine is %s, held %+v", name, got, list.Changes)
		}

		if diff := cmp.Diff(use(v1alpha1.ApprovalAbsent), list.Approvals); diff != "" {
			t.Errorf("%s: the approval of what nothing asks for, -want, +got:\n%s", name, diff)
		}
	}

	// It says who, and opens the gate.
	stored := storedOf(t, observed, rsp)
	annotations := stored.GetResource().GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()

	for key, parts := range map[string][]string{
		v1alpha1.AnnotationTrace:      {"initiator: anna", "kind: ChangeApproval", "name: xdatabase-db-x7k2p", "reason: CHG-1", "field: spec.forProvider.engine"},
		v1alpha1.AnnotationAllowances: {"relation: External", "- Update", "initiator: anna"},
	} {
		for _, part := range parts {
			if text := annotations[key].GetStringValue(); !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in\n%s", key, part, text)
			}
		}
	}

	if text := annotations[v1alpha1.AnnotationAllowances].GetStringValue(); strings.Contains(text, "  digest: ") || strings.Contains(text, "  approval: ") {
		t.Errorf("the managed resource's own allowance is for one change alone:\n%s", text)
	}

	// Once it was seen it is used, and the same change once more is held.
	req := call(t, xr, observed, sized("small", "mysql"), "")
	req.Observed.Resources["database"] = stored

	if diff := cmp.Diff(use(v1alpha1.ApprovalUsed), heldList(t, run(t, req)).Approvals); diff != "" {
		t.Errorf("the approval that was used, -want, +got:\n%s", diff)
	}

	back := stored.GetResource().GetFields()["spec"].GetStructValue().GetFields()["forProvider"].GetStructValue().GetFields()
	back["engine"] = structpb.NewStringValue("postgres")

	delete(annotations, v1alpha1.AnnotationWish) // It is not what is wished all along.

	rsp = run(t, req)
	if got := engineOf(rsp.GetDesired().GetResources()["database"]); got != "postgres" {
		t.Errorf("what was approved once is let through twice: engine is %s", got)
	}
}

// TestAnApprovalIsOfOneObject and not of another one of its name.
func TestAnApprovalIsOfOneObject(t *testing.T) {
	observed := strings.Replace(observedObject, "\nmetadata:\n", observedWithUID, 1)
	digest := heldList(t, run(t, call(t, approvedXR, observed, sized("small", "mysql"), ""))).Changes[0].Digest
	xr := withAllowances(t, "Object", "spec.forProvider.engine", digest, "Update")

	rsp := run(t, call(t, xr, strings.Replace(observed, "obj-uid", "restored", 1), sized("small", "mysql"), ""))
	if got := engineOf(rsp.GetDesired().GetResources()["database"]); got != "postgres" {
		t.Errorf("another object of its name: engine is %s", got)
	}
}

// TestCreationsAndDeletionsAreApprovedWhole and each once.
func TestCreationsAndDeletionsAreApprovedWhole(t *testing.T) {
	observed := strings.Replace(observedObject, "\nmetadata:\n", observedWithUID, 1)

	cases := map[string]struct {
		reason, observed, desired, field, follows string
		destroys                                  bool
	}{
		"Create": {reason: "A new resource has no name yet.", desired: sized("small", "mysql"), field: "create", follows: "Create"},
		"Delete": {reason: "A resource goes with its external object.", observed: observed, field: "delete", follows: "Delete", destroys: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			held := heldList(t, run(t, call(t, approvedXR, tc.observed, tc.desired, "")))
			if len(held.Changes) != 1 || held.Changes[0].Field != tc.field || held.Changes[0].Destroys != tc.destroys || held.Changes[0].Digest == "" {
				t.Fatalf("%s\nheld: %+v", tc.reason, held.Changes)
			}

			xr := withAllowances(t, "Object", tc.field, held.Changes[0].Digest, tc.follows)

			rsp := run(t, call(t, xr, tc.observed, tc.desired, ""))
			if list := heldList(t, rsp); len(list.Changes) > 0 || len(list.Approvals) != 1 || list.Approvals[0].State != v1alpha1.ApprovalApplying {
				t.Errorf("%s\nlist: %+v", tc.reason, list)
			}

			text := rsp.GetDesired().GetResources()["database"].String()
			if !strings.Contains(text, "relation: External") || !strings.Contains(text, "- "+tc.follows) {
				t.Errorf("%s\nno allowance for %s: %s", tc.reason, tc.follows, text)
			}

			if tc.field != "create" {
				// As long as it is there it is about to go, whatever it says itself.
				req := call(t, xr, tc.observed, tc.desired, "")
				req.Observed.Resources["database"] = storedOf(t, tc.observed, rsp)

				if list := heldList(t, run(t, req)); len(list.Changes) > 0 || list.Approvals[0].State != v1alpha1.ApprovalApplying {
					t.Errorf("%s\nonce it waits for its gate: %+v", tc.reason, list)
				}

				return
			}

			// Of another content it is another creation.
			other := run(t, call(t, xr, "", sized("small", "oracle"), ""))
			if len(other.GetDesired().GetResources()) > 0 {
				t.Errorf("%s\nanother creation is let through: %v", tc.reason, other.GetDesired())
			}

			// Made once, seen, and taken away by somebody it is held.
			req := call(t, xr, observed, tc.desired, "")
			req.Observed.Resources["database"] = storedOf(t, observed, rsp)

			seen := heldList(t, run(t, req))
			if len(seen.Approvals) != 1 || seen.Approvals[0].State != v1alpha1.ApprovalUsed {
				t.Fatalf("%s\nit stands, and is not used: %+v", tc.reason, seen.Approvals)
			}

			message, err := json.Marshal(seen)
			if err != nil {
				t.Fatal(err)
			}

			again := run(t, call(t, strings.Replace(xr, firstState, string(message), 1), "", tc.desired, ""))
			if len(again.GetDesired().GetResources()) > 0 {
				t.Errorf("%s\nit is made twice: %v", tc.reason, again.GetDesired())
			}
		})
	}
}

// TestAChangeThatIsAnotherOneEachTimeCannotBeApproved after five runs, and is not written any
// more.
func TestAChangeThatIsAnotherOneEachTimeCannotBeApproved(t *testing.T) {
	xr := approvedXR

	const runs = 12

	texts := make([]string, 0, runs)

	for i := range runs {
		list := heldList(t, run(t, call(t, xr, observedObject, sized("small", fmt.Sprintf("random-%d", i)), "")))

		message, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}

		was := "'" + firstState + "'"
		if len(texts) > 0 {
			was = texts[len(texts)-1]
		}

		texts = append(texts, "'"+strings.ReplaceAll(string(message), "'", "''")+"'")
		xr = strings.Replace(xr, was, texts[len(texts)-1], 1)

		if unstable := list.Changes[0].Unstable; unstable != (i >= v1alpha1.MaxUnsteady) || unstable != (list.Changes[0].Digest == "") {
			t.Errorf("run %d: %+v", i, list.Changes[0])
		}
	}

	if texts[len(texts)-1] != texts[len(texts)-2] {
		t.Errorf("what cannot be approved is written each time:\n%s\n%s", texts[len(texts)-2], texts[len(texts)-1])
	}
}

// TestAnApprovedCreationIsLoggedAsItWasDecided and not as it is then given a gate: it would be
// another one by its digest.
func TestAnApprovedCreationIsLoggedAsItWasDecided(t *testing.T) {
	digest := heldList(t, run(t, call(t, approvedXR, "", sized("small", "mysql"), ""))).Changes[0].Digest
	log := &logged{}

	f := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }))
	f.LogDecisions(log)

	req := call(t, withAllowances(t, "Object", "create", digest, "Create"), "", sized("small", "mysql"), "")
	if _, err := f.RunFunction(t.Context(), req); err != nil || len(log.entries) != 1 || log.errs[0] != nil {
		t.Fatalf("%d decisions are logged: %v, %v", len(log.entries), err, log.errs)
	}

	checkLogged(t, log.entries[0], decisionlog.Composite{
		APIVersion: "example.org/v1alpha1", Kind: "XDatabase", Name: "db", Resource: "database",
	})
}

// TestHalfOfAnExchangeWaitsForTheOther where another kind takes the place of a composed resource:
// who has approved the one has not to do so again, and it is not being made either.
func TestHalfOfAnExchangeWaitsForTheOther(t *testing.T) {
	observed := strings.Replace(observedObject, "\nmetadata:\n", observedWithUID, 1)
	desired := strings.Replace(sized("small", "postgres"), "kind: Object", "kind: ObservedObject", 1)

	first := heldList(t, run(t, call(t, approvedXR, observed, desired, "")))
	if len(first.Changes) != 2 {
		t.Fatalf("held: %+v", first)
	}

	for _, e := range first.Changes {
		rsp := run(t, call(t, withAllowances(t, e.Ref.Kind, e.Field, e.Digest, e.Follows...), observed, desired, ""))
		list := heldList(t, rsp)

		want := []v1alpha1.ApprovalUse{{Approval: "cha-uid", Digest: e.Digest, State: v1alpha1.ApprovalWaiting}}
		if diff := cmp.Diff(want, list.Approvals); diff != "" || len(list.Changes) != 1 || list.Changes[0].Digest == e.Digest {
			t.Errorf("%s of %s is approved: held %+v, -want, +got:\n%s", e.Field, e.Ref.Kind, list.Changes, diff)
		}
	}
}
