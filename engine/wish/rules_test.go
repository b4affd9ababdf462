// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
)

// shop is a Deployment as people write it.
const shop = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: 2
  paused: false
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      hostNetwork: false
      automountServiceAccountToken: false
      containers:
      - name: web
        image: nginx:1
        args: []
        env: [{name: MODE, value: ""}, {name: LEVEL, value: info}]
        ports: [{containerPort: 80}, {containerPort: 443}]
        resources: {requests: {cpu: 1000m}}
      - {name: log, image: fluentd:1}
`

func swap(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// want checks which changes a round saw.
func want(t *testing.T, what string, got round, changes ...string) {
	t.Helper()

	if diff := cmp.Diff(changes, got.changes); diff != "" {
		t.Errorf("%s: changes, -want, +got:\n%s", what, diff)
	}
}

// container0 is where the first container's fields are.
const container0 = "spec.template.spec.containers[0]."

func TestAWishThatIsStoredInAnotherFormIsNoChange(t *testing.T) {
	s := newServer(t)
	s.compose(shop, false)

	for range 3 {
		before := s.live.DeepCopy()

		want(t, "the same wish", s.compose(shop, true))

		if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
			t.Errorf("applied again, -before, +after:\n%s", diff)
		}
	}
}

func TestEachChangeOfAWishIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"Value":        {"image: nginx:1", "image: nginx:2", []string{container0 + "image"}},
		"Zero":         {"hostNetwork: false", "hostNetwork: true", []string{"spec.template.spec.hostNetwork"}},
		"Empty":        {`value: ""`, "value: full", []string{container0 + "env[0].value"}},
		"List":         {"args: []", "args: [-v]", []string{container0 + "args[0]"}},
		"Quantity":     {"cpu: 1000m", "cpu: 1100m", []string{container0 + "resources.requests.cpu"}},
		"SameQuantity": {"cpu: 1000m", "cpu: 1", nil},
		"Default":      {"{containerPort: 80}", "{containerPort: 80, protocol: TCP}", nil},
		"Removal":      {"replicas: 2", "", []string{"spec.replicas"}},
		"Addition":     {"replicas: 2", "replicas: 2\n  minReadySeconds: 5", []string{"spec.minReadySeconds"}},
		"AddedFalse":   {"hostNetwork: false", "hostNetwork: false\n      enableServiceLinks: false", []string{"spec.template.spec.enableServiceLinks"}},
		"AddedZero":    {"hostNetwork: false", "hostNetwork: false\n      securityContext: {runAsUser: 0}", []string{"spec.template.spec.securityContext.runAsUser"}},
		"AddedUnsaid":  {"hostNetwork: false", "hostNetwork: false\n      hostPID: false", nil},
		"AddedAny":     {"hostNetwork: false", "hostNetwork: false\n      tolerations: [{}]", []string{"spec.template.spec.tolerations[0]"}},
		"Element":      {"{containerPort: 80}, ", "", []string{container0 + "ports[0].containerPort", container0 + "ports[0].protocol"}},
		"NewElement":   {"{containerPort: 80}", "{containerPort: 81}, {containerPort: 80}", []string{container0 + "ports[0].containerPort"}},
		"Order":        {"{containerPort: 80}, {containerPort: 443}", "{containerPort: 443}, {containerPort: 80}", []string{container0 + "ports"}},
		"ElementGone": {"      - {name: log, image: fluentd:1}\n", "", []string{
			"spec.template.spec.containers[1].image", "spec.template.spec.containers[1].imagePullPolicy",
			"spec.template.spec.containers[1].name", "spec.template.spec.containers[1].resources",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.compose(shop, false)

			changed := swap(shop, tc.from, tc.to)
			before := s.live.DeepCopy()

			// In the run right after the creation, held, and still held.
			want(t, "changed", s.compose(changed, true), tc.want...)
			want(t, "held", s.compose(changed, true), tc.want...)

			if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" && len(tc.want) > 0 {
				t.Errorf("what is held was applied, -before, +after:\n%s", diff)
			}

			// Taken back, it is no change.
			want(t, "taken back", s.compose(shop, true))

			if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
				t.Errorf("taken back, -before, +after:\n%s", diff)
			}

			// Allowed, it is applied once.
			want(t, "allowed", s.compose(changed, false), tc.want...)
			want(t, "applied", s.compose(changed, true))
		})
	}
}

func TestWhatIsChangedByHandIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(spec map[string]any)
		want []string
	}{
		"Value":      {func(spec map[string]any) { container(spec, 0)["image"] = "nginx:3" }, []string{container0 + "image"}},
		"Normalized": {func(spec map[string]any) { container(spec, 0)["args"] = []any{"-x"} }, []string{container0 + "args[0]"}},
		"Quantity": {func(spec map[string]any) {
			resource.Map(container(spec, 0), "resources", "requests")["cpu"] = "2"
		}, []string{container0 + "resources.requests.cpu"}},
		"Leaf": {func(spec map[string]any) { delete(spec, "replicas") }, []string{"spec.replicas"}},
		"Element": {func(spec map[string]any) {
			container(spec, 0)["ports"] = resource.List(container(spec, 0), "ports")[:1]
		}, []string{container0 + "ports[1].containerPort"}},
		"Zero": {func(spec map[string]any) {
			resource.Map(spec, "template", "spec")["hostNetwork"] = true
		}, []string{"spec.template.spec.hostNetwork"}},
		"ZeroGone": {func(spec map[string]any) {
			delete(resource.Map(spec, "template", "spec"), "automountServiceAccountToken")
		}, []string{"spec.template.spec.automountServiceAccountToken"}},
		"BesideNoZero": {func(spec map[string]any) { spec["progressDeadlineSeconds"] = int64(60) }, nil},
		"Added":        {func(spec map[string]any) { spec["minReadySeconds"] = int64(5) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.compose(shop, false)
			s.edit("kubectl", tc.edit)
			before := s.live.DeepCopy()

			want(t, "edited", s.compose(shop, true), tc.want...)
			want(t, "held", s.compose(shop, true), tc.want...)

			if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
				t.Errorf("put back though it is held, -before, +after:\n%s", diff)
			}

			if len(tc.want) == 0 {
				return
			}

			want(t, "put back", s.compose(shop, false), tc.want...)
			want(t, "settled", s.compose(shop, true))
		})
	}
}

func TestDriftThenAChangedWishThenTheWishTakenBack(t *testing.T) {
	const image = container0 + "image"

	s := newServer(t)
	s.compose(shop, false)
	s.edit("kubectl", func(spec map[string]any) { container(spec, 0)["image"] = "nginx:3" })

	want(t, "drift", s.compose(shop, true), image)
	want(t, "changed wish", s.compose(swap(shop, "nginx:1", "nginx:2"), true), image)
	want(t, "taken back", s.compose(shop, true), image)

	if got := container(resource.Map(s.live.Object, "spec"), 0)["image"]; got != "nginx:3" {
		t.Errorf("image: %v", got)
	}

	s.edit("kubectl", func(spec map[string]any) { container(spec, 0)["image"] = "nginx:1" })
	want(t, "put back by hand", s.compose(shop, true))
}

func TestWhatOthersWroteStaysTheirsWhileSomethingIsHeld(t *testing.T) {
	s := newServer(t)
	s.compose(shop, false)
	s.edit("injector", func(spec map[string]any) {
		container(spec, 0)["workingDir"] = "/srv"
		pod := resource.Map(spec, "template", "spec")
		pod["containers"] = append(resource.List(pod, "containers"), map[string]any{"name": "proxy", "image": "envoy"})
	})

	want(t, "held", s.compose(swap(shop, "nginx:1", "nginx:2"), true), container0+"image")
	want(t, "again", s.compose(shop, true))

	spec := resource.Map(s.live.Object, "spec")
	if container(spec, 0)["workingDir"] != "/srv" || container(spec, 2)["image"] != "envoy" {
		t.Errorf("what the injector wrote: %v", spec)
	}
}

func TestAnAutoscalerKeepsWhatItScales(t *testing.T) {
	s := newServer(t)
	s.compose(shop, false)

	for i := range int64(20) {
		s.edit("kube-controller-manager", func(spec map[string]any) { spec["replicas"] = 3 + i })
		s.scaled("kube-controller-manager")

		got := s.compose(shop, true)
		want(t, "scaled", got)

		if diff := cmp.Diff([]string{"spec.replicas"}, got.delegated); diff != "" {
			t.Errorf("left to others, -want, +got:\n%s", diff)
		}

		if n := resource.Int(s.live.Object, "spec", "replicas"); n != 3+i {
			t.Errorf("replicas: %d", n)
		}
	}

	want(t, "a changed wish", s.compose(swap(shop, "replicas: 2", "replicas: 4"), true), "spec.replicas")
}

func TestWithoutARecordValuesAreCompared(t *testing.T) {
	changed := swap(shop, "nginx:1", "nginx:2")

	t.Run("Dropped", func(t *testing.T) {
		s := newServer(t)
		s.compose(shop, false)
		delete(resource.Map(s.live.Object, "metadata", "annotations"), "kausality.io/wish")
		want(t, "dropped, with a new Composition", s.compose(changed, true), container0+"image")
	})

	t.Run("Empty", func(t *testing.T) {
		const volume = "volumes: [{name: config, configMap: {name: config}}]"

		from := swap(shop, "hostNetwork: false", "hostNetwork: false\n      "+volume)

		for _, add := range []string{
			volume + "\n      enableServiceLinks: false", volume + "\n      securityContext: {runAsUser: 0}", volume + "\n      tolerations: [{}]",
			"volumes: [{name: config, configMap: {name: config, optional: false}}]",
		} {
			s := newServer(t)
			s.compose(from, false)
			delete(resource.Map(s.live.Object, "metadata", "annotations"), "kausality.io/wish")

			before := s.live.DeepCopy()
			if got := s.compose(swap(from, volume, add), true); len(got.changes) != 1 {
				t.Errorf("%s: %q", add, got.changes)
			}

			if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
				t.Errorf("%s: what is held was applied, -before, +after:\n%s", add, diff)
			}
		}
	})

	t.Run("Baseline", func(t *testing.T) {
		s := newServer(t)
		s.compose(shop, false)
		delete(resource.Map(s.live.Object, "metadata", "annotations"), "kausality.io/wish")

		got := s.composeWith(wish.Input{Baseline: true}, changed, func(change.Change) bool { return true })
		want(t, "taken over", got)

		if diff := cmp.Diff([]string{container0 + "image"}, got.baseline); diff != "" {
			t.Errorf("baseline, -want, +got:\n%s", diff)
		}

		// Nobody may have been told: it stays noted until that is so.
		for _, told := range []bool{false, false, true} {
			got := s.composeWith(wish.Input{Baseline: !told}, changed, func(change.Change) bool { return true })
			if len(got.changes) > 0 || len(got.baseline) > 0 == told {
				t.Errorf("told %t: baseline %q, changes %q", told, got.baseline, got.changes)
			}
		}

		if text := resource.Annotation(s.live, "kausality.io/wish"); strings.Contains(text, "baseline") {
			t.Errorf("told, it is still noted: %s", text)
		}
	})

	t.Run("Restored", func(t *testing.T) {
		s := newServer(t)
		s.compose(shop, false)

		for _, e := range resource.List(s.live.Object, "metadata", "managedFields") {
			m, _ := e.(map[string]any)
			m["manager"], m["operation"] = "velero", "Update"
		}

		want(t, "restored", s.compose(shop, true))
		want(t, "with another wish", s.compose(changed, true), container0+"image")
	})
}

func TestARecordOfAnotherKindOrFormIsNone(t *testing.T) {
	s := newServer(t)
	s.compose(shop, false)

	annotations := resource.Map(s.live.Object, "metadata", "annotations")
	text, _ := annotations["kausality.io/wish"].(string)

	for name, tc := range map[string]struct {
		text string
		none bool
		bad  bool
	}{
		"Whole":   {text, false, false},
		"Kind":    {swap(text, "kind: Deployment", "kind: Other"), true, false},
		"Version": {swap(text, "version: 1", "version: 2"), true, true},
		"Cut":     {swap(text, "\nversion", "A\nversion"), true, true},
		"Garbage": {"}", true, true},
	} {
		annotations["kausality.io/wish"] = tc.text

		got, err := wish.Parse(s.live)
		if (got == nil) != tc.none || (err != nil) != tc.bad {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
