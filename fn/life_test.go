// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

const heldImage = "generation 12: settled, 1 change held: spec.template.spec.containers[0].image of Deployment d (nginx → apache)"

// imaged is the Deployment that is wished with another image.
func imaged(image string) string {
	return strings.Replace(wishedDeployment, "nginx", image, 1)
}

// settledApp is an XApp whose Deployment is as it is wished, and recorded.
func settledApp(t *testing.T) *app {
	t.Helper()

	return settledWith(t, wishedDeployment, storedDeployment, fieldsOfDeployment)
}

// settledWith is an XApp whose composed resource is as it is wished, and recorded.
func settledWith(t *testing.T, wished, stored, fields string) *app {
	t.Helper()

	a := newApp(t, freshXApp, wished, nil)
	rsp, _ := a.run("")
	a.xr["metadata"] = fromYAML(t, steadyXApp)["metadata"]
	a.observed = composed(t, stored, fields)
	a.annotate(rsp.GetDesired().GetResources()["d"].GetResource())
	a.wants("generation 12: settled")

	return a
}

// out is the Deployment that a run wants.
func out(rsp *fnv1.RunFunctionResponse) map[string]any {
	return rsp.GetDesired().GetResources()["d"].GetResource().AsMap()
}

// managedBy has only another manager have the fields of the stored object.
func (a *app) managedBy(manager string) {
	for _, e := range resource.List(a.observed, "metadata", "managedFields") {
		m, _ := e.(map[string]any)
		m["manager"], m["operation"] = manager, "Update"
	}
}

// TestAStepWithRandomOutputIsHeldAndWritesOnce that it is held.
func TestAStepWithRandomOutputIsHeldAndWritesOnce(t *testing.T) {
	a := settledApp(t)
	record := resource.String(a.observed, "metadata", "annotations", annotationWish)

	var first *fnv1.RunFunctionResponse

	for i := range 5 {
		value := fmt.Sprintf("random-%d", i)
		a.wished = fromYAML(t, imaged(value))

		rsp, message := a.run("")
		if want := strings.Replace(heldImage, "apache", value, 1); !strings.HasPrefix(message, want) {
			t.Errorf("condition: %q, want %q", message, want)
		}

		got := resource.String(out(rsp), "metadata", "annotations", annotationWish)
		if leaves, withheld, ok := strings.Cut(got, "withheld:"); leaves != record || !ok || !strings.Contains(withheld, `at: "12.0"`) {
			t.Errorf("run %d: the record is %q, want %q, and what is held", i, got, record)
		}

		if first == nil {
			first = rsp
		}

		if diff := cmp.Diff(first.GetDesired(), rsp.GetDesired(), protocmp.Transform()); diff != "" {
			t.Errorf("run %d wants another state, -first, +now:\n%s", i, diff)
		}
	}

	a.wished = fromYAML(t, wishedDeployment)
	a.wants("generation 12: settled")
}

func TestADroppedRecordLetsNoNewWishThrough(t *testing.T) {
	a := settledApp(t)

	// No webhook sees it: somebody drops the record while a Composition changes.
	resource.Map(a.observed, "metadata")["annotations"] = map[string]any{}
	a.wished = fromYAML(t, imaged("apache"))

	for range 3 {
		rsp, message := a.run("")
		if !strings.HasPrefix(message, heldImage) {
			t.Errorf("condition: %q, want %q", message, heldImage)
		}

		for _, r := range rsp.GetResults() {
			if r.GetReason() == "KausalityBaseline" {
				t.Errorf("a baseline is taken once more: %s", r.GetMessage())
			}
		}
	}

	a.wished = fromYAML(t, wishedDeployment)
	a.wants("generation 12: settled")
}

func TestWhatIsRestoredFromABackupIsNoNewWish(t *testing.T) {
	const made, before, after = "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z"

	for name, tc := range map[string]struct {
		reason string
		// restored is true where the XR is too, and made when that was.
		restored bool
		made     string
		// dropped is true where a webhook lets none of our annotations through.
		dropped bool
		want    string
		image   string
	}{
		"Composed":        {"The XR is there, and what it composes is restored.", false, before, false, heldImage, "nginx"},
		"ComposedDropped": {"So it is where its record is lost.", false, before, true, heldImage, "nginx"},
		"Both":            {"A record that is there tells that wishes were held.", true, before, false, heldImage, "nginx"},
		"BothDropped": {
			"Without any it is taken over as a fleet is: what is wished becomes the baseline, and is listed.",
			true, before, true, "generation 12: settled", "apache",
		},
		"XRLast": {"An XR that was made after what it composes did not make it.", true, after, true, heldImage, "nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			a := settledApp(t)
			a.managedBy("velero-server")

			resource.Map(a.observed, "metadata")["creationTimestamp"] = made
			resource.Map(a.xr, "metadata")["creationTimestamp"] = tc.made

			if tc.dropped {
				resource.Map(a.observed, "metadata")["annotations"] = map[string]any{}
			}

			lost := func() {
				if tc.restored {
					delete(a.xr, "status")
				}
			}

			lost()

			record := resource.Map(a.observed, "metadata", "annotations")

			rsp, message := a.run("")
			if message != "generation 12: settled" || len(rsp.GetResults()) > 0 {
				t.Errorf("the same wish: %q, %v", message, rsp.GetResults())
			}

			resource.Map(a.observed, "metadata")["annotations"] = record
			a.wished = fromYAML(t, imaged("apache"))

			lost()

			rsp, message = a.run("")
			if !strings.HasPrefix(message, tc.want) {
				t.Errorf("%s\ncondition: %q, want %q", tc.reason, message, tc.want)
			}

			first, _ := resource.List(out(rsp), "spec", "template", "spec", "containers")[0].(map[string]any)
			if first["image"] != tc.image {
				t.Errorf("%s\nimage %q, want %q", tc.reason, first["image"], tc.image)
			}

			listed := len(rsp.GetResults()) > 0 && rsp.GetResults()[0].GetReason() == "KausalityBaseline"
			if listed != (tc.image == "apache") {
				t.Errorf("%s\nevents: %v", tc.reason, rsp.GetResults())
			}
		})
	}
}

func TestAnotherVersionOfTheSameKindIsNoChange(t *testing.T) {
	const old = "apiVersion: apps/v1beta2"

	former := func(t *testing.T) *app {
		t.Helper()

		a := newApp(t, freshXApp, strings.Replace(wishedDeployment, "apiVersion: apps/v1", old, 1), nil)
		rsp, _ := a.run("")
		a.xr["metadata"] = fromYAML(t, steadyXApp)["metadata"]
		a.observed = composed(t, strings.Replace(storedDeployment, "apiVersion: apps/v1", old, 1), fieldsOfDeployment)
		a.annotate(rsp.GetDesired().GetResources()["d"].GetResource())
		a.wants("generation 12: settled")

		return a
	}

	t.Run("Alone", func(t *testing.T) {
		a := former(t)
		a.wished = fromYAML(t, wishedDeployment)

		rsp, message := a.run("")
		if message != "generation 12: settled" || out(rsp)["apiVersion"] != "apps/v1" {
			t.Errorf("condition: %q, wants %v", message, out(rsp))
		}

		// It is applied, and read in the new version.
		a.observed["apiVersion"] = "apps/v1"
		a.wants("generation 12: settled")

		a.wished = fromYAML(t, imaged("apache"))
		a.wants(heldImage)
	})

	t.Run("WithAnotherValue", func(t *testing.T) {
		a := former(t)
		a.wished = fromYAML(t, imaged("apache"))
		before := maps.Clone(resource.Map(a.observed, "metadata", "annotations"))

		for range 2 {
			rsp, message := a.run("")
			if !strings.HasPrefix(message, heldImage) {
				t.Errorf("condition: %q, want %q", message, heldImage)
			}

			// A part of it cannot be in another version.
			containers := resource.List(out(rsp), "spec", "template", "spec", "containers")
			if first, _ := containers[0].(map[string]any); out(rsp)["apiVersion"] != "apps/v1beta2" || first["image"] != "nginx" {
				t.Errorf("wants %v", out(rsp))
			}
		}

		after := maps.Clone(resource.Map(a.observed, "metadata", "annotations"))
		after[annotationWish], _, _ = strings.Cut(resource.String(after, annotationWish), "withheld:")

		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("it was stamped though nothing changed, -before, +after:\n%s", diff)
		}

		a.wished = fromYAML(t, wishedDeployment)
		a.wants("generation 12: settled")
	})
}
