// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// edited is an XApp that hans has edited, which allows all of what it composes. What the function said of it is lost, as after
// a run that failed.
func (a *app) edited(generation int64, field string) {
	meta := resource.Map(a.xr, "metadata")
	meta["generation"] = generation
	meta["annotations"] = map[string]any{
		v1alpha1.AnnotationInitialized: `{"v":1,"settled":{"generation":12}}`,
		v1alpha1.AnnotationAllowances: strings.NewReplacer("GEN", strconv.FormatInt(generation, 10), "FIELD", field).Replace(`
- {kind: Deployment, mutation: spec, generation: GEN, id: "GEN.0", initiator: hans, source: {type: Policy, field: FIELD}}
- {kind: Deployment, mutation: create, generation: GEN, id: "GEN.0", initiator: hans, source: {type: Policy, field: FIELD}}
- {kind: Deployment, mutation: delete, generation: GEN, id: "GEN.0", initiator: hans, source: {type: Policy, field: FIELD}}
`),
		v1alpha1.AnnotationTrace: strings.NewReplacer("GEN", strconv.FormatInt(generation, 10), "FIELD", field).Replace(
			`[{field: FIELD, generation: GEN, initiator: hans, trace: [{kind: XApp, name: app, generation: GEN, field: FIELD}]}]`),
	}
	a.xr["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(12), "lastTransitionTime": "2026-01-01T00:00:00Z"},
		map[string]any{"type": v1alpha1.ConditionState, "status": "Unknown", "reason": "FatalError"},
		map[string]any{"type": v1alpha1.ConditionKausality, "status": "Unknown", "reason": "FatalError"},
	}}
}

// TestAnEditLetsOutWhatFollowsFromItAlone however much it allows, and whatever the function said is lost.
func TestAnEditLetsOutWhatFollowsFromItAlone(t *testing.T) {
	t.Run("Update", func(t *testing.T) {
		a := settledApp(t)
		a.wished = fromYAML(t, imaged("apache"))
		a.wants(heldImage)

		a.edited(13, "spec.size")
		a.wished = fromYAML(t, strings.Replace(imaged("apache"), "paused: false", "paused: true", 1))

		rsp, message := a.run("")
		if want := "spec.template.spec.containers[0].image of Deployment d (nginx → apache); " +
			`pending since generation 12, before generation 13 of XApp "app" allowed it: approve it`; !strings.Contains(message, want) {
			t.Errorf("condition: %q, want %q", message, want)
		}

		if paused, _ := resource.Value(out(rsp), "spec", "paused"); paused != true {
			t.Errorf("what the edit asks for is held too: %v", out(rsp))
		}

		if image := imageOf(rsp); image != "nginx" {
			t.Errorf("the image is %q", image)
		}

		// Nobody asks for it any more; what is asked for later is the edit's.
		a.wished = fromYAML(t, strings.Replace(wishedDeployment, "paused: false", "paused: true", 1))
		a.run("")
		a.edited(13, "spec.size")
		a.wished = fromYAML(t, strings.Replace(imaged("apache"), "paused: false", "paused: true", 1))

		if rsp, message = a.run(""); imageOf(rsp) != "apache" {
			t.Errorf("it is held still: %s", message)
		}
	})

	t.Run("Edit", func(t *testing.T) {
		a := settledApp(t)
		status := a.xr["status"]
		a.edited(13, "spec.size") // As no policy lets the image follow from it.
		delete(resource.Map(a.xr, "metadata", "annotations"), v1alpha1.AnnotationAllowances)
		a.xr["status"] = status
		a.wished = fromYAML(t, imaged("apache"))
		a.run("")

		a.edited(14, "spec.color") // Who asks for something else did not ask for it.

		if rsp, message := a.run(""); imageOf(rsp) != "nginx" {
			t.Errorf("who changes another field lets it out: %s", message)
		}

		a.edited(14, "spec.size") // Once one does.

		if rsp, message := a.run(""); imageOf(rsp) != "apache" {
			t.Errorf("who changes the field anew does not let it out: %s", message)
		}
	})

	t.Run("ByHand", func(t *testing.T) {
		a := settledApp(t)
		containers := resource.List(a.observed, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "apache" //nolint:errcheck // It is one.
		a.managedBy("kubectl-edit")

		if _, message := a.run("repair: Hold"); !strings.Contains(message, "(apache → nginx)") {
			t.Fatalf("condition: %q", message)
		}

		// What nobody asked for anew is no reason to hold what hans asks for.
		a.edited(13, "spec.size")
		a.wished = fromYAML(t, imaged("caddy"))

		if rsp, message := a.run("repair: Hold"); imageOf(rsp) != "caddy" {
			t.Errorf("the image is %q: %s", imageOf(rsp), message)
		}
	})

	t.Run("Delete", func(t *testing.T) {
		a := settledApp(t)
		kept := a.wished
		a.wished = nil
		a.wants("generation 12: settled, 1 change held: deletion of Deployment d")

		a.edited(13, "spec.size")

		if _, message := a.run(""); !strings.Contains(message, "deletion of Deployment d") {
			t.Errorf("condition: %q", message)
		}

		a.wished = kept
		a.run("")
		a.edited(13, "spec.size")
		a.wished = nil

		if rsp, message := a.run(""); rsp.GetDesired().GetResources()["d"] != nil {
			t.Errorf("it is held still: %s", message)
		}
	})

	t.Run("Create", func(t *testing.T) {
		a := settledApp(t)
		second := fromYAML(t, strings.Replace(wishedDeployment, "name: d,", "name: e,", 1))

		run := func() (*fnv1.RunFunctionResponse, string) { return a.runWith("e", second) }

		if _, message := run(); !strings.Contains(message, "creation of Deployment of composed resource e") {
			t.Fatalf("condition: %q", message)
		}

		a.edited(13, "spec.size")

		if rsp, message := run(); !strings.Contains(message, "creation of Deployment of composed resource e") || rsp.GetDesired().GetResources()["e"] != nil {
			t.Errorf("condition: %q", message)
		}

		// Another one is the edit's.
		a.edited(13, "spec.size")

		third := fromYAML(t, strings.Replace(wishedDeployment, "name: d,", "name: f,", 1))
		if rsp, message := a.runWith("f", third); rsp.GetDesired().GetResources()["f"] == nil {
			t.Errorf("condition: %q", message)
		}
	})
}

// TestWhatIsListedAsHeldStaysHeld where the composed resource that should have it on record has not.
func TestWhatIsListedAsHeldStaysHeld(t *testing.T) {
	second := strings.Replace(wishedDeployment, "name: d,", "name: e,", 1)

	for name, test := range map[string]struct {
		held func(t *testing.T) (a *app, again func() (*fnv1.RunFunctionResponse, string))
		want string
	}{
		"NotApplied": {func(t *testing.T) (*app, func() (*fnv1.RunFunctionResponse, string)) {
			t.Helper()

			a := settledApp(t)
			before := maps.Clone(resource.Map(a.observed, "metadata", "annotations"))
			a.wished = fromYAML(t, imaged("apache"))
			a.run("")
			resource.Map(a.observed, "metadata")["annotations"] = before

			return a, func() (*fnv1.RunFunctionResponse, string) { return a.run("") }
		}, "(nginx → apache)"},
		"CarrierGone": {func(t *testing.T) (*app, func() (*fnv1.RunFunctionResponse, string)) {
			t.Helper()

			a := settledApp(t)
			again := func() (*fnv1.RunFunctionResponse, string) { return a.runWith("e", fromYAML(t, second)) }
			again()
			a.observed = nil

			return a, again
		}, "creation of Deployment of composed resource e"},
		"NothingComposed": {func(t *testing.T) (*app, func() (*fnv1.RunFunctionResponse, string)) {
			t.Helper()

			a := newApp(t, steadyXApp, "", nil)
			a.wants("generation 12: settled")
			a.wished = fromYAML(t, wishedDeployment)
			a.run("")

			return a, func() (*fnv1.RunFunctionResponse, string) { return a.run("") }
		}, "creation of Deployment of composed resource d"},
	} {
		t.Run(name, func(t *testing.T) {
			a, again := test.held(t)
			state := a.xr["status"]
			a.edited(13, "spec.color")
			a.xr["status"] = state

			if _, message := again(); !strings.Contains(message, test.want) {
				t.Errorf("it goes out by an edit of later: %s", message)
			}
		})
	}
}

// TestWhatTakesThePlaceOfAResourceStaysHeld though it is of another kind.
func TestWhatTakesThePlaceOfAResourceStaysHeld(t *testing.T) {
	a := settledApp(t)
	a.wished = fromYAML(t, strings.Replace(wishedDeployment, "kind: Deployment", "kind: StatefulSet", 1))

	a.edited(13, "spec.size")
	a.run("")
	a.edited(14, "spec.color")

	annotations := resource.Map(a.xr, "metadata", "annotations")
	text, _ := annotations[v1alpha1.AnnotationAllowances].(string)
	annotations[v1alpha1.AnnotationAllowances] = text + strings.ReplaceAll(text, "Deployment", "StatefulSet")

	if _, message := a.run(""); !strings.Contains(message, "creation of StatefulSet of composed resource d") {
		t.Errorf("condition: %q", message)
	}
}

// TestAnEditOfAnotherPersonCarriesNoneAlong that nobody allowed and that the function has not seen yet.
func TestAnEditOfAnotherPersonCarriesNoneAlong(t *testing.T) {
	stored := func(a *app, generation int64) {
		resource.Map(a.xr, "metadata")["generation"] = generation
		resource.Map(a.xr, "metadata", "annotations")[v1alpha1.AnnotationHeld] = fmt.Sprintf(
			`[{"field":"spec.image","from":"nginx","stored":{},"cause":{"type":"Edit","user":"mallory","since":"2026-01-01T00:00:00Z"},"at":"%d.0"}]`, generation)
	}

	for name, edit := range map[string]func(a *app){
		"Before": func(a *app) {
			a.edited(14, "spec.color")
			stored(a, 13)
			resource.Map(a.xr, "metadata")["generation"] = int64(14)
		},
		"Later": func(a *app) {
			a.edited(13, "spec.color")
			stored(a, 14)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := settledApp(t)
			state := a.xr["status"]
			edit(a)
			a.xr["status"] = state
			a.wished = fromYAML(t, imaged("apache"))

			for range 3 { // Nor once it has seen it.
				if rsp, message := a.run(""); imageOf(rsp) != "nginx" {
					t.Fatalf("it goes out: %s", message)
				}
			}

			delete(resource.Map(a.xr, "metadata", "annotations"), v1alpha1.AnnotationHeld)
			a.wished = fromYAML(t, wishedDeployment) // Taken back.
			a.run("")
			state = a.xr["status"]
			a.edited(15, "spec.color")
			a.xr["status"] = state
			a.wished = fromYAML(t, imaged("caddy"))

			if rsp, message := a.run(""); imageOf(rsp) != "caddy" {
				t.Errorf("it is held for good: %s", message)
			}
		})
	}
}

func imageOf(rsp *fnv1.RunFunctionResponse) string {
	containers := resource.List(out(rsp), "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return ""
	}

	first, _ := containers[0].(map[string]any)

	return resource.String(first, "image")
}

// TestAnEditBeforeThereWasAPolicyIsMadeAnew has somebody set a field whose kind no policy is about, and once there is one
// somebody who may set that field, or another one.
func TestAnEditBeforeThereWasAPolicyIsMadeAnew(t *testing.T) {
	for field, want := range map[string]string{"spec.image": "caddy", "spec.color": "nginx"} {
		t.Run(field, func(t *testing.T) {
			a := settledApp(t)

			// 1. Nothing tells of it.
			resource.Map(a.xr, "metadata")["generation"] = int64(13)
			resource.Map(a.xr, "spec")["image"] = "apache"
			a.wished = fromYAML(t, imaged("apache"))

			for range 2 {
				if rsp, message := a.run(""); imageOf(rsp) != "nginx" {
					t.Fatalf("it goes out: %s", message)
				}
			}

			// 2. The trace tells of this.
			state := a.xr["status"]
			a.edited(14, field)
			a.xr["status"] = state
			a.wished = fromYAML(t, imaged("caddy"))

			for range 2 {
				if rsp, message := a.run(""); imageOf(rsp) != want {
					t.Fatalf("the image is %q: %s", imageOf(rsp), message)
				}
			}
		})
	}
}
