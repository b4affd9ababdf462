// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

package wish_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8smanagedfields "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/change"
	"github.com/kausality-io/kausality-crossplane/engine/managedfields"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/engine/wish"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
)

// server stores a Deployment as the API server does: with its own code for
// field managers, without zero values, and with the defaults that matter here.
type server struct {
	t      *testing.T
	fields *k8smanagedfields.FieldManager
	live   *unstructured.Unstructured
	// tolerations that admission adds to those of pods that do not have them.
	tolerations []corev1.Toleration
	// unchanged is how many wishes were found to be so without a comparison.
	unchanged int
	// custom fills in what is left out of an object of a kind that is no Deployment;
	// nil for that.
	custom func(object map[string]any)
}

func newServer(t *testing.T) *server {
	t.Helper()

	return &server{
		t:      t,
		fields: managedfieldstest.NewFakeFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), appsv1.SchemeGroupVersion.WithKind("Deployment")),
		live: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "shop"},
		}},
	}
}

// store stores an object as it reads back.
func (s *server) store(obj runtime.Object) {
	s.t.Helper()

	u, _ := obj.(*unstructured.Unstructured)

	if s.custom != nil {
		u.Object, _ = fixture.Decoded(u.Object).(map[string]any)
		s.custom(u.Object)
		s.live = u

		return
	}

	typed := &appsv1.Deployment{}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		s.t.Fatal(err)
	}

	for i := range typed.Spec.Template.Spec.Containers {
		c := &typed.Spec.Template.Spec.Containers[i]
		if c.ImagePullPolicy == "" {
			c.ImagePullPolicy = corev1.PullIfNotPresent
		}

		for j := range c.Ports {
			if c.Ports[j].Protocol == "" {
				c.Ports[j].Protocol = corev1.ProtocolTCP
			}
		}
	}

	pod := &typed.Spec.Template.Spec

	for _, toleration := range s.tolerations {
		if !slices.ContainsFunc(pod.Tolerations, func(has corev1.Toleration) bool { return has.Key == toleration.Key }) {
			pod.Tolerations = append(pod.Tolerations, toleration)
		}
	}

	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		s.t.Fatal(err)
	}

	delete(out, "status")
	s.live = &unstructured.Unstructured{Object: out}
}

func (s *server) apply(obj map[string]any, by string) {
	s.t.Helper()

	out, err := s.fields.Apply(s.live, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)}, by, true)
	if err != nil {
		s.t.Fatal(err)
	}

	s.store(out)
}

// edit changes the object as an update by hand does.
func (s *server) edit(by string, how func(spec map[string]any)) {
	s.t.Helper()

	u := s.live.DeepCopy()
	how(resource.Map(u.Object, "spec"))

	out, err := s.fields.Update(s.live, u, by)
	if err != nil {
		s.t.Fatal(err)
	}

	s.store(out)
}

// scaled notes that the last edit by a manager went through the subresource
// scale.
func (s *server) scaled(by string) {
	s.t.Helper()

	for _, e := range resource.List(s.live.Object, "metadata", "managedFields") {
		if m, _ := e.(map[string]any); m["manager"] == by {
			m["subresource"] = "scale"
		}
	}
}

// round is what comes of one run.
type round struct {
	changes, baseline, delegated []string
	applied                      map[string]any
}

// compose applies a wish as Crossplane does, with what is held of it, which is
// all or nothing.
func (s *server) compose(text string, hold bool) round {
	s.t.Helper()

	return s.composeWith(wish.Input{}, text, func(change.Change) bool { return hold })
}

func (s *server) composeWith(in wish.Input, text string, hold func(change.Change) bool) round {
	s.t.Helper()

	obj := normalized(s.t, text)
	rec := wish.RecordOf(obj)
	out := round{applied: obj}

	if s.live.Object["spec"] != nil {
		fields, err := managedfields.Of(s.live, manager)
		if err != nil {
			s.t.Fatal(err)
		}

		in.Record, err = wish.Parse(s.live)
		if err != nil {
			s.t.Fatal(err)
		}

		in.Wish, in.Stored, in.Fields = &unstructured.Unstructured{Object: obj}, s.live, fields
		unchanged := wish.Unchanged(in.Wish, in.Stored, in.Record, managedfields.AppliedBy(s.live, manager), func(string) bool { return false })
		c := wish.Compare(in)
		merged := managedfields.Merge(s.live.Object, c.Object, fields)

		for _, ch := range change.Between(s.live.Object, merged) {
			if ch.Path[0].Field != "metadata" {
				out.changes = append(out.changes, ch.Field)
			}
		}

		out.baseline, out.delegated = c.Baseline, c.Delegated
		out.applied, rec = c.Answer(change.Merge(s.live.Object, merged, hold))

		if unchanged {
			s.unchanged++
			s.checkUnchanged(obj, merged, out, in.Record, rec)
		}
	}

	s.record(out.applied, rec)
	s.upgrade()
	s.apply(out.applied, manager)

	return out
}

// checkUnchanged checks that a comparison comes to the same about a wish that is unchanged.
func (s *server) checkUnchanged(obj, merged map[string]any, out round, last, rec *wish.Record) {
	s.t.Helper()

	for what, pair := range map[string][2]any{
		"what is stored": {s.live.Object, merged}, "what is applied": {obj, out.applied},
		"the record": {formatted(s.t, last), formatted(s.t, rec)},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			s.t.Errorf("unchanged, but %s changes, -before, +after:\n%s", what, diff)
		}
	}

	if len(out.baseline)+len(out.delegated) > 0 {
		s.t.Errorf("unchanged, but %v count as wished all along, and %v are left to others", out.baseline, out.delegated)
	}
}

func formatted(t *testing.T, rec *wish.Record) string {
	t.Helper()

	text, err := rec.Format("apps/v1", "Deployment")
	if err != nil {
		t.Fatal(err)
	}

	return text
}

// upgrade does what Crossplane does before it applies: to what no manager of its
// applies it takes away all managers, and later on the one of what was there
// before.
//
// Source: github.com/crossplane/crossplane/v2 v2.4.0, internal/ssa/managed_fields.go.
func (s *server) upgrade() {
	list := resource.List(s.live.Object, "metadata", "managedFields")

	is := func(manager string) func(any) bool {
		return func(e any) bool {
			m, _ := e.(map[string]any)

			return m["manager"] == manager
		}
	}

	switch {
	case len(list) == 0:
	case !slices.ContainsFunc(list, is(manager)):
		delete(resource.Map(s.live.Object, "metadata"), "managedFields")
	default:
		resource.Map(s.live.Object, "metadata")["managedFields"] = slices.DeleteFunc(slices.Clone(list), is("before-first-apply"))
	}
}

func (s *server) record(obj map[string]any, rec *wish.Record) {
	s.t.Helper()

	text, err := rec.Format(s.live.GetAPIVersion(), s.live.GetKind())
	if err != nil {
		s.t.Fatal(err)
	}

	if err := unstructured.SetNestedField(obj, text, "metadata", "annotations", v1alpha1.AnnotationWish); err != nil {
		s.t.Fatal(err)
	}
}

// container returns a container of the Deployment's spec by its place.
func container(spec map[string]any, i int) map[string]any {
	m, _ := resource.List(spec, "template", "spec", "containers")[i].(map[string]any)

	return m
}
