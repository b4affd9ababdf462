// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// byHand is the stored Deployment with an image that somebody has set by hand.
func (a *app) byHand(image string) {
	containers := resource.List(a.observed, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = image //nolint:errcheck // It is one.
	a.owns(fieldsOfDeployment, `"f:image": {}, `)
}

// owns takes a part out of the fieldsV1 that Crossplane manages, for somebody else manages it.
func (a *app) owns(fields, part string) {
	a.t.Helper()

	meta := resource.Map(a.observed, "metadata")
	theirs := map[string]any{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": map[string]any{}}

	raw, err := json.Marshal(fromYAML(a.t, strings.Replace(fields, part, "", 1)))
	own := map[string]any{}

	if err == nil {
		err = json.Unmarshal(raw, &own)
	}

	if err != nil {
		a.t.Fatal(err)
	}

	crossplanes, _ := resource.List(meta, "managedFields")[0].(map[string]any)
	crossplanes["fieldsV1"] = own
	meta["managedFields"] = []any{crossplanes, theirs}
}

// repaired is what a run says that it puts back.
func repaired(rsp *fnv1.RunFunctionResponse) string {
	var out []string

	for _, r := range rsp.GetResults() {
		if r.GetReason() == string(v1alpha1.EventReasonRepaired) {
			out = append(out, r.GetMessage())
		}
	}

	return strings.Join(out, "\n")
}

const (
	repairsImage = "Changed or deleted by hand, and reverted to the Composition: " +
		"Deployment d spec.template.spec.containers[0].image"
	createsAgain = "Changed or deleted by hand, and reverted to the Composition: Deployment of composed resource d"
)

// TestWhatSomebodyChangesByHandIsPutBack at once, and less and less often where it is changed again.
func TestWhatSomebodyChangesByHandIsPutBack(t *testing.T) {
	a := settledApp(t)
	start := a.now

	for _, step := range []struct {
		after time.Duration
		held  string // Empty where it is repaired.
	}{
		{after: 0},
		{after: 59 * time.Second, held: "next repair at 2026-01-01T00:06:00Z: repaired 1 of 4 times since 2026-01-01T00:05:00Z, and changed again"},
		{after: time.Minute},
		{after: 5 * time.Minute, held: "next repair at 2026-01-01T00:11:00Z"},
		{after: 6 * time.Minute},
		{after: 36 * time.Minute},
		{after: 23 * time.Hour, held: "Contested: repaired 4 times since 2026-01-01T00:05:00Z, and changed again each time; no further repair"},
		{after: 50 * time.Hour, held: "Contested: repaired 4 times since 2026-01-01T00:05:00Z"},
	} {
		t.Run(step.after.String(), func(t *testing.T) {
			a.now = start.Add(step.after)
			a.byHand("apache")

			rsp, message := a.run("")
			if !strings.Contains(message, step.held) || step.held == "" && message != "generation 12: settled" {
				t.Errorf("condition: %q", message)
			}

			if is := repaired(rsp); (is == repairsImage) != (step.held == "") {
				t.Errorf("repaired: %q", is)
			}

			if held := imageOf(rsp) != "nginx"; held != (step.held != "") {
				t.Errorf("image: %q", imageOf(rsp))
			}

			entry, _, _ := strings.Cut(resource.String(out(rsp), "metadata", "annotations", v1alpha1.AnnotationTrace), "\n- ")
			if step.held == "" && (!strings.Contains(entry, "containers[0].image") ||
				!strings.Contains(entry, "repaired: "+a.now.Format(`"2006-01-02T15:04:05Z"`))) {
				t.Errorf("trace: %s", entry)
			}
		})
	}

	t.Run("Approvable", func(t *testing.T) {
		rsp, _ := a.run("")

		state := stateIn(t, rsp)
		if len(state.Changes) != 1 || state.Changes[0].Digest == "" || state.Changes[0].Cause.Type != v1alpha1.CauseDrift {
			t.Errorf("listed: %+v", state.Changes)
		}
	})

	t.Run("Taken back", func(t *testing.T) {
		a.byHand("nginx")
		a.run("")
		a.now = a.now.Add(25 * time.Hour)
		a.byHand("apache")

		if rsp, message := a.run(""); repaired(rsp) == "" {
			t.Errorf("condition: %q", message)
		}
	})
}

func stateIn(t *testing.T, rsp *fnv1.RunFunctionResponse) v1alpha1.State {
	t.Helper()

	for _, c := range rsp.GetConditions() {
		if c.GetType() == v1alpha1.ConditionState {
			out := v1alpha1.State{}
			if err := json.Unmarshal([]byte(c.GetMessage()), &out); err != nil {
				t.Fatal(err)
			}

			return out
		}
	}

	t.Fatal("there is no state")

	return v1alpha1.State{}
}

// TestWhatTheCompositionChangesIsNoRepair though somebody has changed it by hand, too.
func TestWhatTheCompositionChangesIsNoRepair(t *testing.T) {
	for name, change := range map[string]struct {
		do    func(a *app)
		input string
		held  string
	}{
		"Wish": {func(a *app) { a.byHand("apache"); a.wished = fromYAML(t, imaged("caddy")) }, "", "(apache → caddy)"},
		"Removal": {func(a *app) {
			a.byHand("apache")
			a.wished = fromYAML(t, strings.Replace(wishedDeployment, "image: nginx, ", "", 1))
		}, "", ""},
		"Hold":          {func(a *app) { a.byHand("apache") }, "repair: Hold", "(apache → nginx)"},
		"Deleted":       {func(a *app) { a.observed, a.wished = nil, fromYAML(t, imaged("caddy")) }, "", "creation of "},
		"Deleted, Hold": {func(a *app) { a.observed = nil }, "repair: Hold", "creation of "},
		"Lost record": {func(a *app) {
			a.observed = nil
			delete(a.xr["status"].(map[string]any), "conditions")                                                        //nolint:errcheck // It is one.
			a.xr["metadata"].(map[string]any)["annotations"] = map[string]any{v1alpha1.AnnotationInitialized: `{"v":1}`} //nolint:errcheck // As above.
		}, "", "creation of "},
		"Deleting": {func(a *app) {
			a.observed = nil
			a.xr["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z" //nolint:errcheck // As above.
		}, "", "creation of "},
	} {
		t.Run(name, func(t *testing.T) {
			a := settledApp(t)
			change.do(a)

			if rsp, message := a.run(change.input); repaired(rsp) != "" || !strings.Contains(message, change.held) {
				t.Errorf("repaired: %q, condition: %q", repaired(rsp), message)
			}
		})
	}
}

// TestWhatSomebodyDeletesByHandIsCreatedAgain where it is desired as it was.
func TestWhatSomebodyDeletesByHandIsCreatedAgain(t *testing.T) {
	a := settledApp(t)
	there := a.observed

	for i, after := range []time.Duration{0, time.Minute, 6 * time.Minute, 36 * time.Minute} {
		start := a.now
		a.now = start.Add(after)
		a.observed = nil

		rsp, message := a.run("")
		if repaired(rsp) != createsAgain || message != "generation 12: settled" {
			t.Fatalf("%d: repaired: %q, condition: %q", i, repaired(rsp), message)
		}

		if trace := resource.String(out(rsp), "metadata", "annotations", v1alpha1.AnnotationTrace); !strings.Contains(trace, "repaired: ") {
			t.Errorf("%d: trace: %s", i, trace)
		}

		a.observed = there
		a.annotate(rsp.GetDesired().GetResources()["d"].GetResource())
		a.run("")

		a.observed = nil

		if rsp, message := a.run(""); rsp.GetDesired().GetResources()["d"] != nil || !strings.Contains(message, "creation of ") {
			t.Errorf("%d: at once: %q", i, message)
		}

		a.now = start
	}

	a.now = a.now.Add(20 * time.Hour)

	if rsp, message := a.run(""); rsp.GetDesired().GetResources()["d"] != nil || !strings.Contains(message, "creation of ") {
		t.Errorf("for the fifth time: %q", message)
	}
}

// TestASecretIsRepaired though nothing is recorded of its values.
func TestASecretIsRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		do       func(a *app)
		repaired bool
	}{
		"Changed": {func(a *app) {
			a.observed["data"] = map[string]any{"user": "eA==", "other": "b3RoZXI="}
			a.owns(fieldsOfSecret, `, "f:user": {}`)
		}, true},
		"Key removed": {func(a *app) {
			a.observed["data"] = map[string]any{"other": "b3RoZXI="}
			a.owns(fieldsOfSecret, `, "f:user": {}`)
		}, true},
		"Deleted":           {func(a *app) { a.observed = nil }, true},
		"Desired otherwise": {func(a *app) { a.wished = fromYAML(t, strings.Replace(wishedSecret, "b3RoZXI=", "bmV3", 1)) }, false},
		"New key": {func(a *app) {
			a.wished = fromYAML(t, strings.Replace(wishedSecret, "user: admin", "user: admin, more: x", 1))
		}, false},
		"New key, held before": {func(a *app) {
			a.wished = fromYAML(t, strings.Replace(wishedSecret, "user: admin", "user: admin, more: x", 1))
			a.run("")
		}, false},
		"Deleted, with what was held": {func(a *app) {
			a.wished = fromYAML(t, strings.Replace(wishedSecret, "b3RoZXI=", "bmV3", 1))
			a.run("")
			a.observed = nil
			a.run("")
		}, false},
		"Edited meanwhile": {func(a *app) {
			a.observed["data"] = map[string]any{"user": "eA==", "other": "b3RoZXI="}
			a.owns(fieldsOfSecret, `, "f:user": {}`)
			a.xr["metadata"].(map[string]any)["generation"] = int64(13) //nolint:errcheck // It is one.
		}, false},
		"Deleted, with another key": {func(a *app) {
			a.observed, a.wished = nil, fromYAML(t, strings.Replace(wishedSecret, "user: admin", "user: admin, more: x", 1))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := settledWith(t, wishedSecret, storedSecret, fieldsOfSecret)
			test.do(a)

			rsp, message := a.run("")
			if (repaired(rsp) != "") != test.repaired {
				t.Errorf("repaired: %q, condition: %q", repaired(rsp), message)
			}

			for _, c := range rsp.GetConditions() {
				if strings.Contains(c.GetMessage(), "admin") || strings.Contains(c.GetMessage(), "YWRtaW4") {
					t.Errorf("it shows a value: %s", c.GetMessage())
				}
			}
		})
	}
}

// TestOfOneXRTenResourcesAreRepairedAMinute and the others then.
func TestOfOneXRTenResourcesAreRepairedAMinute(t *testing.T) {
	a := settledApp(t)
	a.byHand("apache")

	const all = 14

	req := a.request("")
	for i := range all {
		name := fmt.Sprintf("d%02d", i)
		observed := fromYAML(t, "{}")
		raw, err := json.Marshal(a.observed)

		if err == nil {
			err = json.Unmarshal(raw, &observed)
		}

		if err != nil {
			t.Fatal(err)
		}

		resource.Map(observed, "metadata")["name"] = name
		req.Observed.Resources[name] = toResource(t, observed)
		req.Desired.Resources[name] = toResource(t, fromYAML(t, strings.Replace(wishedDeployment, "name: d,", "name: "+name+",", 1)))
	}

	rsp, _ := a.respond(req)

	n := 0
	for name, r := range rsp.GetDesired().GetResources() {
		if r.GetResource() != nil && strings.Contains(fmt.Sprint(r.GetResource().AsMap()["spec"]), "nginx") {
			n++
		}

		observed := req.GetObserved().GetResources()[name].GetResource().GetFields()["metadata"].GetStructValue()
		observed.Fields["annotations"] = r.GetResource().GetFields()["metadata"].GetStructValue().GetFields()["annotations"]
	}

	if n != 10 {
		t.Errorf("%d were repaired", n)
	}

	a.now = a.now.Add(59 * time.Second)
	req.Observed.Composite = toResource(t, a.xr)

	rsp, _ = a.respond(req)

	waits := 0
	for _, c := range stateIn(t, rsp).Changes {
		if c.Missing == "10 resources of XApp app were repaired within a minute; this one waits" {
			waits++
		}
	}

	if repaired(rsp) != "" || waits != all+1-10 {
		t.Errorf("repaired: %q, %d wait", repaired(rsp), waits)
	}

	a.now = a.now.Add(2 * time.Second)

	if rsp, message := a.respond(req); strings.Count(repaired(rsp), "Deployment") != 10 {
		t.Errorf("repaired: %s, condition: %q", repaired(rsp), message)
	}
}

// TestWhatIsNoRepairIsNotRepaired: what others may change, and what a gate would stand before.
func TestWhatIsNoRepairIsNotRepaired(t *testing.T) {
	const image = `"spec.template.spec.containers[0].image"`

	trace := func(a *app, entries ...string) {
		annotations := resource.Map(a.observed, "metadata", "annotations")
		annotations[v1alpha1.AnnotationTrace] = "[" + strings.Join(entries, ", ") + "]"
	}

	for name, test := range map[string]struct {
		do       func(a *app)
		repaired bool
	}{
		"By who may": {func(a *app) {
			trace(a, `{field: `+image+`, generation: 1, initiator: hans, trace: [{kind: Deployment, name: d, generation: 1, field: `+image+`}]}`)
		}, false},
		"By a controller in a window": {func(a *app) {
			trace(a, `{field: `+image+`, generation: 1, initiator: UpgradeAllowance/w, by: operator, trace: [{kind: Deployment, name: d, generation: 1, field: `+image+`}]}`)
		}, false},
		"By Crossplane in a window": {func(a *app) {
			trace(a, `{field: `+image+`, generation: 1, initiator: UpgradeAllowance/w, trace: [{kind: Deployment, name: d, generation: 1, field: `+image+`}]}`)
		}, true},
		"Of one that hans made": {func(a *app) {
			trace(a, `{field: create, generation: 1, initiator: hans, trace: [{kind: Deployment, name: d, generation: 1, field: create}]}`)
		}, true},
		"A record that counts backwards": {func(a *app) {
			annotations := resource.Map(a.observed, "metadata", "annotations")
			annotations[v1alpha1.AnnotationWish] = annotations[v1alpha1.AnnotationWish].(string) + "repairs: {aaaaaaaaaaaa: {n: -1}}\n" //nolint:errcheck // It is one.
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := settledApp(t)
			a.byHand("apache")
			test.do(a)

			rsp, message := a.run("")
			if (repaired(rsp) != "") != test.repaired {
				t.Errorf("repaired: %q, condition: %q", repaired(rsp), message)
			}

			// What is put back is not left to others from then on.
			if test.repaired {
				a.now = a.now.Add(time.Hour)
				a.byHand("again")

				if rsp, message := a.run(""); repaired(rsp) == "" {
					t.Errorf("the second time: %q", message)
				}
			}
		})
	}
}

// TestWhatDoesNotAppearIsTriedAgain, and counts once.
func TestWhatDoesNotAppearIsTriedAgain(t *testing.T) {
	a := settledApp(t)
	a.observed = nil

	for i := range 10 {
		rsp, message := a.run("")
		if rsp.GetDesired().GetResources()["d"] == nil {
			t.Fatalf("%d: it is not desired: %q", i, message)
		}

		if told := repaired(rsp) != ""; told != (i == 0) {
			t.Errorf("%d: repaired: %q", i, repaired(rsp))
		}

		if again := stateIn(t, rsp).Again["d"]; again.Count != 1 || again.Seen {
			t.Errorf("%d: %+v", i, again)
		}

		a.now = a.now.Add(10 * time.Minute)
	}
}

// TestWhatSomebodyAddsToAWholeIsTakenOut and what the Composition takes out is held, beside it.
func TestWhatSomebodyAddsToAWholeIsTakenOut(t *testing.T) {
	const selected = "selector: {app: a, tier: b}"

	selecting := func(text string) string { return strings.Replace(text, "spec: {", "spec: {"+selected+", ", 1) }
	settled := func(t *testing.T) *app {
		t.Helper()

		return settledWith(t, selecting(wishedService), selecting(storedService), strings.Replace(fieldsOfService, `{"f:ports"`, `{"f:selector": {}, "f:ports"`, 1))
	}

	a := settled(t)
	resource.Map(a.observed, "spec", "selector")["app2"] = "a"
	delete(resource.Map(a.observed, "spec", "selector"), "app")

	rsp, message := a.run("")
	if got := fmt.Sprint(resource.Map(out(rsp), "spec", "selector")); got != "map[app:a tier:b]" || message != "generation 12: settled" {
		t.Errorf("selector: %s, condition: %q", got, message)
	}

	a = settled(t)
	a.wished = fromYAML(t, strings.Replace(wishedService, "spec: {", "spec: {selector: {app: a}, ", 1))

	if _, message := a.run(""); !strings.Contains(message, "spec.selector.tier of Service d (b") {
		t.Errorf("condition: %q", message)
	}
}
