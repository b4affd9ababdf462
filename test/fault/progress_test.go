// Copyright The Kausality Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build stack

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kausality-io/kausality-crossplane/apis/v1alpha1"
	"github.com/kausality-io/kausality-crossplane/engine/allowance"
	"github.com/kausality-io/kausality-crossplane/engine/resource"
	"github.com/kausality-io/kausality-crossplane/test/fixture"
	"github.com/kausality-io/kausality-crossplane/test/scenario"
	"github.com/kausality-io/kausality-crossplane/test/world"
)

// frozen refuses each write of the note of a shed, as a rule of another team may, so that a run of the pipeline fails: what is
// only invalid Crossplane leaves out, and goes on.
const frozen = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen-sheds}
spec:
  failurePolicy: Fail
  matchConstraints:
    objectSelector: {matchLabels: {app: shed-note}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "false", message: the notes are frozen, reason: Forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen-sheds}
spec: {policyName: frozen-sheds, validationActions: [Deny]}
`

// shed is an XR of which hans asks for other sizes.
type shed struct {
	client.Client

	hans client.Client
	xr   *unstructured.Unstructured
}

func newShed(t *testing.T, name string) *shed {
	t.Helper()

	if err := compose(t, "postgres"); err != nil {
		t.Fatal(err)
	}

	s := &shed{Client: world.Connect(t, running.Config()), hans: as(t, "hans"), xr: named("shop.example.org/v1", "Shed", name)}
	s.xr.Object["spec"] = map[string]any{"size": "small"}

	if err := scenario.Eventually(t.Context(), "a new shed", func(ctx context.Context) error { return s.hans.Create(ctx, s.xr.DeepCopy()) }); err != nil {
		t.Fatal(err)
	}

	return s
}

// live reads the XR, the managed resource and the note.
func (s *shed) live(ctx context.Context) (xr, object, note *unstructured.Unstructured, err error) {
	xr, note = s.xr.DeepCopy(), named("v1", "ConfigMap", s.xr.GetName()+"-note")
	if err := errors.Join(s.Get(ctx, client.ObjectKeyFromObject(xr), xr), s.Get(ctx, client.ObjectKeyFromObject(note), note)); err != nil {
		return nil, nil, nil, err
	}

	for _, ref := range resource.Composed(xr) {
		if ref.Kind == managed {
			object = named(ref.APIVersion, ref.Kind, ref.Name)

			return xr, object, note, s.Get(ctx, client.ObjectKeyFromObject(object), object)
		}
	}

	return nil, nil, nil, fmt.Errorf("no managed resource: %w", world.ErrOther)
}

// settled checks that it is: of a size, with the engine from before, and whether something is held.
func (s *shed) settled(ctx context.Context, size string, holds bool) error {
	xr, object, note, err := s.live(ctx)
	if err != nil {
		return err
	}

	p, _ := resource.ProgressOf(xr)
	list, _ := allowance.Parse(xr)
	said, _ := resource.ConditionOf(xr, v1alpha1.ConditionKausality)
	data := resource.Map(object.Object, "spec", "forProvider", "manifest", "data")

	if p.Phase != v1alpha1.PhaseSettled || p.Generation != xr.GetGeneration() || len(list) > 0 || !fixture.Initialized(xr) ||
		fixture.Holds(said.Message) != holds || resource.String(note.Object, "data", "size") != size ||
		data["size"] != size || data["engine"] != "postgres" {
		return fmt.Errorf("%+v, %v, %q, %v, %v: %w", p, list, said.Message, data, note.Object["data"], world.ErrOther)
	}

	return nil
}

// lost checks that a run of its pipeline has failed, and Crossplane has taken away what the function had said.
func (s *shed) lost(ctx context.Context) error {
	xr, object, _, err := s.live(ctx)
	if err != nil {
		return err
	}

	c, _ := resource.ConditionOf(xr, v1alpha1.ConditionState)
	if engine := resource.String(object.Object, manifest("engine")...); c.Status != "Unknown" || engine != "postgres" {
		return fmt.Errorf("%+v, %s: %w", c, engine, world.ErrOther)
	}

	return nil
}

// compose has the Composition of sheds ask for an engine.
func compose(t *testing.T, engine string) error {
	t.Helper()

	text, err := os.ReadFile("testdata/sheds.yaml")
	if err != nil {
		return fmt.Errorf("cannot read sheds: %w", err)
	}

	return apply(t, strings.Replace(string(text), "engine: postgres", "engine: "+engine, 1))
}

// widen has the policy of sheds allow all of a managed resource.
func widen(t *testing.T) error {
	t.Helper()

	text, err := os.ReadFile("testdata/sheds.yaml")
	if err != nil {
		return fmt.Errorf("cannot read sheds: %w", err)
	}

	return apply(t, strings.NewReplacer("mutations: [spec.forProvider.manifest.data.size]", "mutations: [spec]", "engine: postgres", "engine: mysql").
		Replace(string(text)))
}

// TestAnXRKeepsItsProgressWhateverIsLost has a run of the pipeline fail with the first one that a Composition's update and an
// edit are in, so that Crossplane takes away what the function said; restarts the manager and the function; and has the XR
// made again from a backup that has no annotations of ours.
func TestAnXRKeepsItsProgressWhateverIsLost(t *testing.T) {
	world.Long(t)

	impatient(t)
	ctx := t.Context()
	s := newShed(t, "tools")

	is := func(t *testing.T, what string, check func(context.Context) error) {
		t.Helper()

		if err := scenario.Eventually(t.Context(), what, check); err != nil {
			t.Fatal(err)
		}
	}

	is(t, "a shed", func(ctx context.Context) error { return s.settled(ctx, "small", false) })

	xr, object, _, err := s.live(ctx)
	if err := errors.Join(err, age(ctx, s.Client, object)); err != nil {
		t.Fatal(err)
	}

	key := "/registry/shop.example.org/sheds/" + xr.GetNamespace() + "/" + xr.GetName()

	_, since, err := readAt(ctx, key, 0)
	if err != nil {
		t.Fatal(err)
	}

	// 1. An apply fails in the run in which a Composition's update and an edit come first.
	if err := running.Process("crossplane").Kill(); err != nil {
		t.Fatal(err)
	}

	if err := errors.Join(apply(t, frozen), compose(t, "mysql"),
		s.hans.Patch(ctx, s.xr.DeepCopy(), world.Merge(`{"spec": {"size": "large"}}`)), running.Process("crossplane").Restart(ctx)); err != nil {
		t.Fatal(err)
	}

	is(t, "a run that fails", s.lost)

	// 2. The manager and the function are started anew, and it fails again.
	for _, process := range []string{"kausality-manager", "function-kausality"} {
		if _, err := kill(ctx, process); err != nil {
			t.Fatal(err)
		}
	}

	is(t, "a run that fails again", s.lost)

	xr, _, _, err = s.live(ctx)
	if list, _ := allowance.Parse(xr); err != nil || len(list) == 0 {
		t.Errorf("what hans asked for counts as served: %v", err)
	}

	// 3. The failure is gone.
	thaw(t, s.Client)
	is(t, "a large shed", func(ctx context.Context) error { return s.settled(ctx, "large", true) })

	notBuiltUp(t, key, since)

	// 4. Another edit, which allows all of what it composes, lets out what follows from it alone.
	if err := errors.Join(widen(t), scenario.Eventually(ctx, "a wide policy", func(ctx context.Context) error {
		return s.hans.Patch(ctx, s.xr.DeepCopy(), world.Merge(`{"spec": {"size": "small"}}`))
	})); err != nil {
		t.Fatal(err)
	}

	is(t, "a small shed again", func(ctx context.Context) error { return s.settled(ctx, "small", true) })

	if _, object, _, err = s.live(ctx); err != nil || !strings.Contains(resource.Annotation(object, v1alpha1.AnnotationTrace), "manifest.data.size") ||
		strings.Contains(resource.Annotation(object, v1alpha1.AnnotationTrace), "manifest.data.engine") {
		t.Errorf("%v: the trace is %s", err, resource.Annotation(object, v1alpha1.AnnotationTrace))
	}

	if err := s.hans.Patch(ctx, s.xr.DeepCopy(), world.Merge(`{"spec": {"size": "large"}}`)); err != nil {
		t.Fatal(err)
	}

	is(t, "a large shed again", func(ctx context.Context) error { return s.settled(ctx, "large", true) })

	all, err := versions(ctx, key, since)
	if err != nil || !slices.ContainsFunc(all, func(u *unstructured.Unstructured) bool {
		list, _ := allowance.Parse(u)

		return slices.ContainsFunc(list, func(a v1alpha1.Allowance) bool { return a.Mutation == "spec" })
	}) {
		t.Errorf("no edit has allowed all: %v", err)
	}

	// 5. The XR is made again from a backup, while nobody is asked.
	was := xr.GetUID()

	since = s.restore(t, key)
	is(t, "a restored shed", func(ctx context.Context) error { return s.settled(ctx, "large", true) })
	notBuiltUp(t, key, since)

	if xr, _, _, err = s.live(ctx); err != nil || xr.GetUID() == was {
		t.Errorf("it is the XR from before: %v", err)
	}
}

// notBuiltUp checks that no version of an XR since a revision counts as built up.
func notBuiltUp(t *testing.T, key string, since int64) {
	t.Helper()

	all, err := versions(t.Context(), key, since)
	if err != nil {
		t.Fatal(err)
	}

	for _, u := range all {
		if p, reports := resource.ProgressOf(u); reports && p.Phase == v1alpha1.PhaseInitializing {
			t.Errorf("it is built up at version %s: %v, %+v", u.GetResourceVersion(), u.GetAnnotations(), u.Object["status"])
		}
	}
}

// TestAnXRIsBuiltUpThoughItsFirstRunsFail has an apply fail from the beginning: nobody says then that the XR is built up, and
// it refers to what it composes.
func TestAnXRIsBuiltUpThoughItsFirstRunsFail(t *testing.T) {
	world.Long(t)

	ctx := t.Context()
	s := newShed(t, "first")

	if err := scenario.Eventually(ctx, "a shed", func(ctx context.Context) error { return s.settled(ctx, "small", false) }); err != nil {
		t.Fatal(err)
	}

	// 1. The notes are frozen before another one is made.
	probe := named("v1", "ConfigMap", "probe-note")
	probe.SetLabels(map[string]string{"app": "shed-note"})

	if err := errors.Join(apply(t, frozen), scenario.Eventually(ctx, "ice", func(ctx context.Context) error {
		if err := s.Create(ctx, probe.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a note is made: %w", errors.Join(err, world.ErrOther))
		}

		return nil
	})); err != nil {
		t.Fatal(err)
	}

	late := &shed{Client: s.Client, hans: s.hans, xr: named("shop.example.org/v1", "Shed", "late")}
	late.xr.Object["spec"] = map[string]any{"size": "small"}

	if err := s.hans.Create(ctx, late.xr.DeepCopy()); err != nil {
		t.Fatal(err)
	}

	if err := scenario.Eventually(ctx, "a run that fails", func(ctx context.Context) error {
		xr := late.xr.DeepCopy()
		if err := s.Get(ctx, client.ObjectKeyFromObject(xr), xr); err != nil {
			return err
		}

		if c, ok := resource.ConditionOf(xr, resource.ConditionSynced); !ok || c.True() || len(resource.Composed(xr)) == 0 {
			return fmt.Errorf("%v: %w", xr.Object["status"], world.ErrOther)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	// 2. Once they are not, it is made like any other.
	thaw(t, s.Client)

	if err := scenario.Eventually(ctx, "a late shed", func(ctx context.Context) error { return late.settled(ctx, "small", false) }); err != nil {
		t.Fatal(err)
	}
}

func thaw(t *testing.T, c client.Client) {
	t.Helper()

	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("admissionregistration.k8s.io/v1")
		u.SetKind(kind)
		u.SetName("frozen-sheds")

		if err := c.Delete(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
}

// restore makes the XR again from a backup without our annotations and without a status, with what it composes where it was. It
// returns the revision that it is made at.
func (s *shed) restore(t *testing.T, key string) int64 {
	t.Helper()

	ctx := t.Context()
	dead := []string{"crossplane", "kausality-manager"}

	backup, object, note, err := s.live(ctx)
	if err != nil {
		t.Fatal(err)
	}

	for _, p := range dead {
		if err := running.Process(p).Kill(); err != nil {
			t.Fatal(err)
		}
	}

	hooks := &unstructured.Unstructured{}
	hooks.SetAPIVersion("admissionregistration.k8s.io/v1")

	for kind, name := range map[string]string{"MutatingWebhookConfiguration": v1alpha1.NameWebhooks, "ValidatingWebhookConfiguration": v1alpha1.NameWebhooks} {
		hooks.SetKind(kind)
		hooks.SetName(name)

		if err := client.IgnoreNotFound(s.Delete(ctx, hooks.DeepCopy())); err != nil {
			t.Fatal(err)
		}
	}

	gone := func(ctx context.Context) error { // The API server forgets who is asked a moment later.
		live := s.xr.DeepCopy()
		if err := s.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return client.IgnoreNotFound(err)
		}

		return errors.Join(s.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationOrphan)),
			s.Patch(ctx, live, world.Merge(`{"metadata": {"finalizers": null}}`)), world.ErrOther)
	}
	if err := scenario.Eventually(ctx, "an XR that is lost", gone); err != nil {
		t.Fatal(err)
	}

	for _, u := range []*unstructured.Unstructured{object, note} {
		if err := s.Patch(ctx, u.DeepCopy(), world.Merge(`{"metadata": {"ownerReferences": null}}`)); err != nil {
			t.Fatal(err)
		}
	}

	again := s.xr.DeepCopy()
	again.Object["spec"] = backup.Object["spec"]
	again.SetLabels(backup.GetLabels())

	if err := s.Create(ctx, again); err != nil {
		t.Fatal(err)
	}

	_, since, err := readAt(ctx, key, 0)
	if err != nil {
		t.Fatal(err)
	}

	for _, p := range slices.Backward(dead) {
		if err := running.Process(p).Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}

	return since
}
