// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/kausality-io/kausality-crossplane/webhook"
)

const (
	// store is a root; whoever changes it gives a ticket.
	store = `
apiVersion: example.org/v1
kind: Store
metadata: {name: s, namespace: shop, uid: s, generation: 1, resourceVersion: "7", annotations: {ticket: OPS-1, db-password: hunter2}}
spec: {size: small, zone: a}
`
	storePolicies = `
- metadata: {name: size, generation: 3}
  spec:
    match: {kind: Store, fields: [spec.size], capture: ["metadata.annotations[ticket]", "metadata.annotations[db-password]"]}
    subjects: [{kind: User, name: hans, mayInitiate: true}]
- metadata: {name: zone, generation: 7}
  spec:
    match: {kind: Store, fields: [spec.zone]}
    subjects: [{kind: User, name: hans, mayInitiate: true}]
`
	storeEnforcements = `
- metadata: {name: stores, generation: 2}
  spec: {match: {resourceRules: [{apiGroups: [example.org], resources: [stores]}]}, validationActions: [ACTION]}
`
)

// stores is a cluster with a store, and an action on what nobody may change of it.
func stores(tb testing.TB, action string) *cluster {
	tb.Helper()

	c := &cluster{}
	c.informed = append(c.informed, manifest(tb, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))

	for text, into := range map[string]any{
		storePolicies: &c.policies, strings.Replace(storeEnforcements, "ACTION", action, 1): &c.enforcements,
	} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			tb.Fatal(err)
		}
	}

	return c
}

// larger is a user's request for a larger store in another zone.
func larger(tb testing.TB, user string) *admissionv1.AdmissionRequest {
	tb.Helper()

	return update(tb, manifest(tb, store), manifest(tb, strings.Replace(store, "{size: small, zone: a}", "{size: large, zone: b}", 1)), user)
}

// TestARefusalShowsClientsWhyOfEachField in its details, and the audit log and the
// log which generation of what was asked.
func TestARefusalShowsClientsWhyOfEachField(t *testing.T) {
	var said []string

	judge := stores(t, "Deny").judge(t, time.Now())
	judge.Log = funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})

	if rsp := post(t, serve(t, &webhook.Mutator{Judge: judge}), larger(t, "anna")); !rsp.Allowed {
		t.Fatalf("what is stored in the end decides: %v", rsp.Result)
	}

	rsp := post(t, serve(t, &webhook.Enforcer{Judge: judge}), larger(t, "anna"))
	if rsp.Allowed || rsp.Result.Reason != metav1.StatusReasonForbidden {
		t.Fatalf("answer: %+v", rsp)
	}

	want := &metav1.StatusDetails{Name: "s", Group: "example.org", Kind: "stores", UID: "s", Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeForbidden, Field: "spec.size", Message: `policy "size": only User hans may, not anna ` +
			`(generation 3 of AllowancePolicy "size", generation 2 of Enforcement "stores")`},
		{Type: metav1.CauseTypeForbidden, Field: "spec.zone", Message: `policy "zone": only User hans may, not anna ` +
			`(generation 7 of AllowancePolicy "zone", generation 2 of Enforcement "stores")`},
	}}
	if diff := cmp.Diff(want, rsp.Result.Details); diff != "" {
		t.Errorf("details, -want, +got:\n%s", diff)
	}

	annotations := map[string]string{
		"decision": "Denied", "fields": "spec.size; spec.zone", "policies": "size@3; zone@7", "enforcements": "stores@2",
		"missing":      `policy "size": only User hans may, not anna`,
		"attestations": `{"metadata.annotations[db-password]":"(masked)","metadata.annotations[ticket]":"OPS-1"}`,
	}
	if diff := cmp.Diff(annotations, rsp.AuditAnnotations); diff != "" {
		t.Errorf("audit annotations, -want, +got:\n%s", diff)
	}

	line := strings.Join(said, "\n")
	for _, part := range []string{
		`"decision"="Denied"`, `"policies"=["size@3" "zone@7"]`, `"enforcements"=["stores@2"]`,
		`"metadata.annotations[ticket]"="OPS-1"`, `"spec.zone: policy \"zone\": only User hans may, not anna`,
	} {
		if !strings.Contains(line, part) {
			t.Errorf("the log lacks %s: %s", part, line)
		}
	}
}

// TestWhatIsAllowedIsOnRecordToo with the policy, its generation, and the ticket.
func TestWhatIsAllowedIsOnRecordToo(t *testing.T) {
	judge := stores(t, "Deny").judge(t, time.Now())

	rsp := post(t, serve(t, &webhook.Mutator{Judge: judge}), larger(t, "hans"))
	for key, want := range map[string]string{
		"decision": "Allowed", "rule": "Initiate", "policy": "size", "initiator": "hans", "fields": "spec.size; spec.zone",
		"policies": "size@3; zone@7", "enforcements": "stores@2",
		"attestations": `{"metadata.annotations[db-password]":"(masked)","metadata.annotations[ticket]":"OPS-1"}`,
	} {
		if rsp.AuditAnnotations[key] != want {
			t.Errorf("%s is %q, want %q", key, rsp.AuditAnnotations[key], want)
		}
	}
}

// TestAuditAnnotationsStayWithinTheirLimit whatever is refused.
func TestAuditAnnotationsStayWithinTheirLimit(t *testing.T) {
	req := larger(t, "anna")
	obj := manifest(t, store)

	for i := range 300 {
		if err := unstructured.SetNestedField(obj.Object, "new", "spec", fmt.Sprintf("field%03d", i)); err != nil {
			t.Fatal(err)
		}
	}

	req.Object.Raw = encode(t, obj)

	rsp := post(t, serve(t, &webhook.Enforcer{Judge: stores(t, "Deny").judge(t, time.Now())}), req)
	if got := rsp.AuditAnnotations["fields"]; len(got) > 1024 || !strings.HasSuffix(got, " more") {
		t.Errorf("fields are %d characters: %s", len(got), got)
	}

	if d := rsp.Result.Details; d == nil || len(d.Causes) != 65 {
		t.Errorf("details %v, want 64 causes and how many more", d)
	}
}

// sink keeps the events that a cluster would.
type sink struct {
	mu  sync.Mutex
	got []*eventsv1.Event
}

func (s *sink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.got = append(s.got, e)

	return e, nil
}

func (*sink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

func (*sink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return e, nil
}

// notes are what events say, by the object and field that they are about.
func (s *sink) notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	out := make([]string, 0, len(s.got))
	for _, e := range s.got {
		out = append(out, e.Regarding.Kind+" "+e.Regarding.FieldPath+" "+e.Reason+": "+e.Note)
	}

	slices.Sort(out)

	return out
}

// recorded is what events a cluster gets of some answers.
func recorded(t *testing.T, judge *webhook.Judge, answers func()) []string {
	t.Helper()

	var out []string

	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		b := events.NewBroadcaster(s)

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
			t.Fatal(err)
		}

		judge.Events = b.NewRecorder(runtime.NewScheme(), "kausality")

		answers()
		time.Sleep(time.Second)
		b.Shutdown()

		out = s.notes()
	})

	return out
}

// handled puts a review to an endpoint without a network.
func handled(t *testing.T, h admission.Handler, req *admissionv1.AdmissionRequest) {
	t.Helper()

	if rsp := h.Handle(t.Context(), admission.Request{AdmissionRequest: *req}); rsp.Result != nil && rsp.Result.Code >= 500 {
		t.Fatalf("answer: %+v", rsp)
	}
}

// TestOneEventReportsAllThatOneWriteHolds as the API server keeps one event of
// several that differ in their text alone.
func TestOneEventReportsAllThatOneWriteHolds(t *testing.T) {
	c := stores(t, "Hold")
	judge := c.judge(t, time.Now())

	got := recorded(t, judge, func() { handled(t, &webhook.Mutator{Judge: judge}, larger(t, "anna")) })
	want := []string{`Store spec.size KausalityHeld: Store s: ` +
		`changes held: spec.size (small → large); spec.zone (a → b)`}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAnotherFieldIsAnotherEvent though it is of the same object and refused for
// the same reason.
func TestAnotherFieldIsAnotherEvent(t *testing.T) {
	c := stores(t, "Deny")
	judge := c.judge(t, time.Now())

	got := recorded(t, judge, func() {
		for _, spec := range []string{"{size: large, zone: a}", "{size: small, zone: b}", "{size: large, zone: a}"} {
			obj := manifest(t, strings.Replace(store, "{size: small, zone: a}", spec, 1))
			handled(t, &webhook.Enforcer{Judge: judge}, update(t, manifest(t, store), obj, "anna"))
		}
	})
	want := []string{
		`Store spec.size KausalityDenied: Store s: refused to anna: change not allowed: ` +
			`spec.size: policy "size": only User hans may, not anna`,
		`Store spec.zone KausalityDenied: Store s: refused to anna: change not allowed: ` +
			`spec.zone: policy "zone": only User hans may, not anna`,
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAParentHearsOfEachOfItsChildren that is held up.
func TestAParentHearsOfEachOfItsChildren(t *testing.T) {
	c := denying(t)
	parent := manifest(t, strings.Replace(deployment, "kausality.io/allowances", "other", 1))
	c.live = append(c.live, parent)
	c.informed = append(c.informed, parent, manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"))
	judge := c.judge(t, time.Now())

	got := recorded(t, judge, func() {
		for _, name := range []string{"web-1", "web-2"} {
			handled(t, &webhook.Enforcer{Judge: judge}, scaled(t, strings.Replace(replicaSet, "web-1", name, 1)))
		}
	})

	about := map[string]int{}
	for _, note := range got {
		who, _, _ := strings.Cut(note, ": refused")
		about[who]++
	}

	want := []string{
		"Deployment  KausalityDenied: ReplicaSet web-1", "Deployment  KausalityDenied: ReplicaSet web-2",
		"ReplicaSet spec.replicas KausalityDenied: ReplicaSet web-1", "ReplicaSet spec.replicas KausalityDenied: ReplicaSet web-2",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(about))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestExpressionsThatFailAreCounted by the policy or Enforcement they are in.
func TestExpressionsThatFailAreCounted(t *testing.T) {
	c := stores(t, "Deny")
	c.policies[0].Spec.Match.CEL = []string{"object.spec.none == 1"}
	judge := c.judge(t, time.Now())

	reg := prometheus.NewRegistry()

	counts, err := webhook.NewMetrics(reg, never{})
	if err != nil {
		t.Fatal(err)
	}

	judge.Metrics = counts

	for range 2 {
		handled(t, &webhook.Mutator{Judge: judge}, larger(t, "hans"))
	}

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() != "kausality_webhook_expression_errors_total" {
			continue
		}

		labels := map[string]string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}

		if n := f.GetMetric()[0].GetCounter().GetValue(); n != 2 || labels["kind"] != "AllowancePolicy" || labels["name"] != "size" {
			t.Errorf("%v of %v, want 2 of AllowancePolicy size", n, labels)
		}

		return
	}

	t.Error("nothing is counted")
}

// TestDecisionsAreCountedByEnforcement and what policies cost by policy: the same request
// costs the same each time.
func TestDecisionsAreCountedByEnforcement(t *testing.T) {
	c := stores(t, "Deny")
	c.policies[0].Spec.Match.CEL = []string{"object.spec.size != ''"}
	judge := c.judge(t, time.Now())

	reg := prometheus.NewRegistry()

	counts, err := webhook.NewMetrics(reg, never{})
	if err != nil {
		t.Fatal(err)
	}

	judge.Metrics = counts

	for _, user := range []string{"hans", "hans", "mallory"} {
		handled(t, &webhook.Mutator{Judge: judge}, larger(t, user))
	}

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	var got []string

	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}

			switch f.GetName() {
			case "kausality_webhook_enforcement_decisions_total":
				got = append(got, fmt.Sprintf("%v %v", values, m.GetCounter().GetValue()))
			case "kausality_webhook_policy_cost":
				got = append(got, fmt.Sprintf("%v %v times, %v in all", values, m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()))
			}
		}
	}

	if diff := cmp.Diff([]string{"[Allowed stores] 2", "[Denied stores] 1", "[size] 3 times, 9 in all"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
