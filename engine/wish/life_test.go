// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kausality-io/kausality-crossplane/engine/resource"
)

// unwritten composes a wish some times, and checks that nothing is stored by it:
// no value, no record, and no field's manager.
func (s *server) unwritten(what, text string, changes ...string) {
	s.t.Helper()

	for i := range 3 {
		before := stored(s)
		want(s.t, what, s.compose(text, true), changes...)

		if diff := cmp.Diff(before, stored(s)); diff != "" && i > 0 {
			s.t.Errorf("%s: written again, -before, +after:\n%s", what, diff)
		}
	}
}

// stored is the object without the times of its writes.
func stored(s *server) map[string]any {
	out := runtime.DeepCopyJSON(s.live.Object)

	for _, e := range resource.List(out, "metadata", "managedFields") {
		if m, ok := e.(map[string]any); ok {
			delete(m, "time")
		}
	}

	return out
}

// ports swaps the first container's ports.
func swapPorts(spec map[string]any) {
	list := resource.List(container(spec, 0), "ports")
	list[0], list[1] = list[1], list[0]
}

func TestAnEditThatItsAuthorTakesBackIsNone(t *testing.T) {
	for name, edit := range map[string]func(spec map[string]any){
		"Value": func(spec map[string]any) { container(spec, 0)["image"] = "nginx:3" },
		"Leaf":  func(spec map[string]any) { delete(spec, "replicas") },
		"Zero":  func(spec map[string]any) { resource.Map(spec, "template", "spec")["hostNetwork"] = true },
		"Empty": func(spec map[string]any) {
			env, _ := resource.List(container(spec, 0), "env")[0].(map[string]any)
			env["value"] = "full"
		},
		"List": func(spec map[string]any) { container(spec, 0)["args"] = []any{"-x"} },
		"Element": func(spec map[string]any) {
			container(spec, 0)["ports"] = resource.List(container(spec, 0), "ports")[:1]
		},
		"Order":  swapPorts,
		"Beside": func(spec map[string]any) { spec["minReadySeconds"] = int64(5) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.compose(shop, false)
			before := runtime.DeepCopyJSON(resource.Map(s.live.Object, "spec"))
			record := resource.Annotation(s.live, "kausality.io/wish")

			// Taken back before, and after Crossplane read it.
			for _, looks := range []int{0, 2} {
				s.edit("kubectl", edit)

				for range looks {
					s.compose(shop, true)
				}

				s.edit("kubectl", func(spec map[string]any) {
					clear(spec)
					maps.Copy(spec, runtime.DeepCopyJSON(before))
				})

				s.unwritten(fmt.Sprintf("taken back after %d runs", looks), shop)

				if diff := cmp.Diff(before, resource.Map(s.live.Object, "spec")); diff != "" {
					t.Errorf("stored, -before, +after:\n%s", diff)
				}

				if got := resource.Annotation(s.live, "kausality.io/wish"); got != record {
					t.Errorf("record: %s, want %s", got, record)
				}
			}

			want(t, "a changed wish", s.compose(swap(shop, "fluentd:1", "fluentd:2"), true), "spec.template.spec.containers[1].image")
		})
	}
}

func TestAnotherOrderByHandIsSeen(t *testing.T) {
	const ports = container0 + "ports"

	s := newServer(t)
	s.compose(shop, false)
	s.edit("kubectl", swapPorts)
	before := s.live.DeepCopy()

	s.unwritten("swapped", shop, ports)

	// Another change of the wish is held in the order in which they are stored.
	s.unwritten("and a changed wish", swap(shop, "nginx:1", "nginx:2"), container0+"image", ports)

	if diff := cmp.Diff(before.Object["spec"], s.live.Object["spec"]); diff != "" {
		t.Errorf("put back though it is held, -before, +after:\n%s", diff)
	}

	// The same order, wished too, is what is stored.
	want(t, "wished as well", s.compose(swap(shop, "{containerPort: 80}, {containerPort: 443}", "{containerPort: 443}, {containerPort: 80}"), true))
	want(t, "wished as before", s.compose(shop, false), ports)
	s.unwritten("put back", shop)
}

func TestAWishThatIsAnotherOneInEachRunIsHeld(t *testing.T) {
	s := newServer(t)
	s.compose(shop, false)
	before := stored(s)

	for i := range 10 {
		want(t, "random", s.compose(swap(shop, "nginx:1", fmt.Sprintf("nginx:random-%d", i)), true), container0+"image")

		if diff := cmp.Diff(before, stored(s)); diff != "" {
			t.Fatalf("run %d: written, -before, +after:\n%s", i, diff)
		}
	}

	want(t, "as it was", s.compose(shop, true))
}

func TestAnUpgradeToServerSideApplyIsNoChange(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		changes []string
	}{
		"Unchanged":       {shop, nil},
		"WithAnotherWish": {swap(shop, "nginx:1", "nginx:2"), []string{container0 + "image"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.compose(shop, false)
			before := runtime.DeepCopyJSON(resource.Map(s.live.Object, "spec"))

			// Composed by an older Crossplane: by another manager, and nothing is recorded.
			delete(resource.Map(s.live.Object, "metadata", "annotations"), "kausality.io/wish")

			for _, e := range resource.List(s.live.Object, "metadata", "managedFields") {
				m, _ := e.(map[string]any)
				m["manager"], m["operation"] = "crossplane", "Update"
			}

			want(t, "by another manager", s.compose(tc.text, true), tc.changes...)

			if got := len(resource.List(s.live.Object, "metadata", "managedFields")); got != 2 {
				t.Errorf("%d managers, want that of what was there before, too", got)
			}

			s.unwritten("upgraded", tc.text, tc.changes...)

			if diff := cmp.Diff(before, resource.Map(s.live.Object, "spec")); diff != "" {
				t.Errorf("stored, -before, +after:\n%s", diff)
			}

			want(t, "as it was", s.compose(shop, true))
			want(t, "a changed wish", s.compose(swap(shop, "fluentd:1", "fluentd:2"), true), "spec.template.spec.containers[1].image")
		})
	}
}
