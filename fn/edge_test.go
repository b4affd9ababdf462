// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kausality-io/kausality-crossplane/fn"
)

func TestAnOlderCrossplaneIsAskedInTheFieldItKnows(t *testing.T) {
	req := call(t, steadyXR, "", "", "")
	present := run(t, req).GetRequirements()

	req.Meta.Capabilities = nil
	older := run(t, req).GetRequirements()

	want, got := present.GetResources(), older.GetExtraResources()                      //nolint:staticcheck // That is the point.
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || len(got) != 3 { // About its kind, its windows, and Enforcements.
		t.Errorf("-resources, +extra_resources:\n%s", diff)
	}

	// Whoever is asked twice compares what it does not know byte by byte, or fetches twice.
	if twice := present.GetExtraResources(); len(twice) > 0 { //nolint:staticcheck // As above.
		t.Errorf("one that says what it can is asked twice: %v", twice)
	}

	if twice := older.GetResources(); len(twice) > 0 {
		t.Errorf("one that does not is asked twice: %v", twice)
	}
}

func TestAnAnswerLastsUntilAWindowOpensOrCloses(t *testing.T) {
	// The tests' clock says midnight of 2026-01-01.
	cases := map[string]struct {
		reason, from, until string
		want                time.Duration
	}{
		"Opens":  {"A window that opens soon.", "2026-01-01T00:00:20Z", "2026-01-02T00:00:00Z", 20 * time.Second},
		"Closes": {"One that closes soon.", "2025-01-01T00:00:00Z", "2026-01-01T00:00:05Z", 5 * time.Second},
		"Later":  {"One that opens later than answers last.", "2026-01-01T01:00:00Z", "2026-01-02T00:00:00Z", time.Minute},
		"Past":   {"One that is over.", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", time.Minute},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := call(t, steadyXR, "", "", "")
			req.RequiredResources = map[string]*fnv1.Resources{"kausality.io/upgradeallowances": {Items: []*fnv1.Resource{resourceOf(t, `
kind: UpgradeAllowance
metadata: {name: w}
spec: {serviceAccount: "system:serviceaccount:a:b", validFrom: "`+tc.from+`", validUntil: "`+tc.until+`"}`)}}}

			if got := run(t, req).GetMeta().GetTtl().AsDuration(); got != tc.want {
				t.Errorf("%s\nTTL %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestAPolicyThatReadsTheTimeIsAskedAgainWithinAMinute, and counts from one moment until
// before another, exactly.
func TestAPolicyThatReadsTheTimeIsAskedAgainWithinAMinute(t *testing.T) {
	// The tests' clock says midnight of 2026-01-01.
	cases := map[string]struct {
		reason, from, until, engine string
	}{
		"Within": {"It is in time.", "2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z", "mysql"},
		"From":   {"The first moment is in time.", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "mysql"},
		"Before": {"The one before is not.", "2026-01-01T00:00:00.000000001Z", "2026-01-02T00:00:00Z", "postgres"},
		"Last":   {"The last one is.", "2025-12-31T00:00:00Z", "2026-01-01T00:00:00.000000001Z", "mysql"},
		"Until":  {"The one after is not.", "2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z", "postgres"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")
			req.RequiredResources["kausality.io/allowancepolicies"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(t, `
apiVersion: kausality.io/v1alpha1
kind: AllowancePolicy
metadata: {name: in-time}
spec:
  match:
    kind: Object
    fields: [spec.forProvider.engine]
    cel: ["timestamp('`+tc.from+`') <= now && now < timestamp('`+tc.until+`')"]
  subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system, mayInitiate: true}]
  allow: [{relation: External, mutations: [Update]}]`)}}

			rsp := run(t, req)
			checkEngine(t, tc.reason, rsp, tc.engine)

			if got := rsp.GetMeta().GetTtl().AsDuration(); got != time.Minute {
				t.Errorf("%s\nTTL %s, want a minute", tc.reason, got)
			}
		})
	}
}

const exception = `
apiVersion: kausality.io/v1alpha1
kind: Enforcement
metadata: {name: strict}
spec:
  match: {resourceRules: [{apiGroups: [kubernetes.crossplane.io], resources: [objects]}]}
  validationActions: [Deny]
  exceptions:
  - name: migration
    subjects: [{kind: ServiceAccount, name: crossplane, namespace: crossplane-system}]
    mutations: [spec.forProvider.engine]
    until: "2026-01-01T00:00:30Z"
    reason: OPS-1
`

// named is what the manager writes where a kind's resource is named otherwise than
// the kind suggests.
const named = "status: {resources: [{group: kubernetes.crossplane.io, kind: Object, resource: objekte}]}\n"

func TestAnExceptionLetsAChangeThroughUntilItEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		enforcements []string
		engine       string
		ttl          time.Duration
	}{
		"InForce": {[]string{exception}, "mysql", 30 * time.Second},
		"Over":    {[]string{strings.Replace(exception, "00:00:30Z", "00:00:00Z", 1)}, "postgres", time.Minute},
		"Other":   {[]string{strings.Replace(exception, "resources: [objects]", "resources: [buckets]", 1)}, "postgres", 30 * time.Second},
		"Named":   {[]string{strings.Replace(exception, "resources: [objects]", "resources: [objekte]", 1) + named}, "mysql", 30 * time.Second},
		"Renamed": {[]string{exception + named}, "postgres", 30 * time.Second},
		"Another": {[]string{exception, "{kind: Enforcement, metadata: {name: all}, spec: {match: {resourceRules: [{apiGroups: ['*'], resources: ['*']}]}, validationActions: [Warn]}}"}, "postgres", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ungated := strings.Replace(observedObject, "{v: 1, state: Closed, generation: 7, since: 2026-01-01T00:00:00Z}", `v: 1\nstate: Ungated\n`, 1) // An exception opens no gate.
			req := call(t, steadyXR, ungated, sized("small", "mysql"), "")

			list := &fnv1.Resources{}
			for _, e := range tc.enforcements {
				list.Items = append(list.Items, resourceOf(t, e))
			}

			req.RequiredResources["kausality.io/enforcements"] = list
			rsp := run(t, req)

			checkEngine(t, name, rsp, tc.engine)

			if got := rsp.GetMeta().GetTtl().AsDuration(); got != tc.ttl {
				t.Errorf("TTL %s, want %s", got, tc.ttl)
			}
		})
	}
}

func TestAnEnforcementThatDoesNotCompileIsNamed(t *testing.T) {
	req := call(t, steadyXR, observedObject, sized("small", "mysql"), "")
	req.RequiredResources["kausality.io/enforcements"] = &fnv1.Resources{Items: []*fnv1.Resource{
		resourceOf(t, strings.Replace(exception, "[spec.forProvider.engine]", "['spec[']", 1)),
	}}

	rsp := run(t, req)
	checkEngine(t, "It excepts nobody.", rsp, "postgres")

	if got := rsp.GetConditions()[0].GetMessage(); !strings.Contains(got, `1 problem: cannot use Enforcement "strict": spec.`) {
		t.Errorf("condition %q", got)
	}
}

func TestCallsAreCounted(t *testing.T) {
	f, registry := fn.New(logging.NewNopLogger()), prometheus.NewRegistry()
	if err := f.Register(registry); err != nil {
		t.Fatal(err)
	}

	if err := f.Register(registry); err == nil || !strings.Contains(err.Error(), "cannot register metrics") {
		t.Errorf("registered twice: %v", err)
	}

	for _, req := range []*fnv1.RunFunctionRequest{
		call(t, steadyXR, observedObject, sized("large", "postgres"), ""), // Allowed.
		call(t, steadyXR, observedObject, sized("small", "mysql"), ""),    // Held.
		call(t, steadyXR, observedObject, sized("small", "mysql"), "mode: Fatal"),
		{}, // It cannot be read.
	} {
		if _, err := f.RunFunction(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}

	got := counted(t, registry)
	want := map[string]float64{
		"kausality_function_calls_total outcome=allowed":                 1,
		"kausality_function_calls_total outcome=held":                    1,
		"kausality_function_calls_total outcome=fatal":                   2,
		"kausality_function_held_changes_total composite_kind=XDatabase": 2,
		"kausality_function_decision_seconds":                            4,
		"kausality_function_decision_log_bytes_total":                    0, // It is not on.
		"kausality_function_decision_log_decisions_total":                0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// counted is what a registry has, by name and labels.
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]float64{}

	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := append(make([]string, 0, 2), family.GetName()) // One label at most.
			for _, l := range m.GetLabel() {
				name = append(name, l.GetName()+"="+l.GetValue())
			}

			got[strings.Join(name, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}

	return got
}

func TestAPanicIsAnsweredWithTheRequestsTag(t *testing.T) {
	calls := 0
	f := fn.New(logging.NewNopLogger(), fn.WithClock(func() time.Time {
		calls++
		if calls == 2 { // In the middle of the request.
			panic("the clock stands still")
		}

		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}))

	req := call(t, steadyXR, observedObject, sized("large", "postgres"), "")

	rsp, err := f.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}

	if n := len(rsp.GetResults()); n != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Fatalf("results: %v", rsp.GetResults())
	}

	for _, want := range []string{`request "t1"`, "the clock stands still"} {
		if got := rsp.GetResults()[0].GetMessage(); !strings.Contains(got, want) {
			t.Errorf("result %q does not say %q", got, want)
		}
	}

	if diff := cmp.Diff(req.GetDesired(), rsp.GetDesired(), protocmp.Transform()); diff != "" {
		t.Errorf("desired, -want, +got:\n%s", diff)
	}
}
